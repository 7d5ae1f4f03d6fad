// The cases through ADBC's Go driver of Databricks: reads the order from standard input, writes the lines of say.py.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/driver/databricks"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

type object = map[string]any

var connection adbc.Connection

func text(column arrow.Array, row int) string {
	if column.IsNull(row) {
		return "NULL"
	}
	switch values := column.(type) {
	case *array.Timestamp:
		unit := values.DataType().(*arrow.TimestampType).Unit
		return values.Value(row).ToTime(unit).Format("2006-01-02 15:04:05.999999")
	case *array.Date32:
		return values.Value(row).ToTime().Format("2006-01-02")
	case *array.Binary:
		return hex.EncodeToString(values.Value(row))
	case *array.List, *array.Map, *array.Struct:
		made, _ := json.Marshal(values.GetOneForMarshal(row))
		return string(made)
	}
	return column.ValueStr(row)
}

// Hands each batch of a statement's rows on.
func batches(ctx context.Context, query string, take func(arrow.RecordBatch)) error {
	statement, err := connection.NewStatement()
	if err != nil {
		return err
	}
	defer statement.Close()
	if err = statement.SetSqlQuery(query); err != nil {
		return err
	}
	reader, _, err := statement.ExecuteQuery(ctx)
	if err != nil {
		return err
	}
	defer reader.Release()
	for reader.Next() {
		take(reader.RecordBatch())
	}
	return reader.Err()
}

func rows(query string) ([][]string, error) {
	found := [][]string{}
	err := batches(context.Background(), query, func(batch arrow.RecordBatch) {
		for row := range int(batch.NumRows()) {
			texts := []string{}
			for _, column := range batch.Columns() {
				texts = append(texts, text(column, row))
			}
			found = append(found, texts)
		}
	})
	return found, err
}

func sum(query string) (any, error) {
	count, total := 0, int64(0)
	err := batches(context.Background(), query, func(batch arrow.RecordBatch) {
		for _, id := range batch.Column(0).(*array.Int64).Int64Values() {
			count++
			total += id
		}
	})
	return object{"rows": count, "sum": total}, err
}

func cancelled(query string) (any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan string, 1)
	go func() {
		how := "error"
		if err := batches(ctx, query, func(arrow.RecordBatch) {}); err == nil {
			how = "rows"
		}
		ended <- how
	}()
	time.Sleep(time.Second)
	start := time.Now()
	cancel()
	how := <-ended
	after, err := rows("SELECT 1")
	if err != nil {
		return nil, err
	}
	return object{"ended": how, "seconds": time.Since(start).Seconds(), "after": after[0][0]}, nil
}

func written(statements []string) (any, error) {
	var seen any
	for _, query := range statements {
		if strings.HasPrefix(query, "SELECT") {
			found, err := rows(query)
			if err != nil {
				return nil, err
			}
			seen = found
			continue
		}
		statement, err := connection.NewStatement()
		if err != nil {
			return nil, err
		}
		if err = statement.SetSqlQuery(query); err == nil {
			_, err = statement.ExecuteUpdate(context.Background())
		}
		statement.Close()
		if err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// Tables by GetObjects, which tells of no columns.
func metadata() (any, error) {
	catalog, schema := "main", "matrix"
	ctx := context.Background()
	reader, err := connection.GetObjects(ctx, adbc.ObjectDepthTables, &catalog, &schema, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	tables, columns := []string{}, []string{}
	for reader.Next() {
		made, err := reader.RecordBatch().Column(1).MarshalJSON()
		if err != nil {
			return nil, err
		}
		var found [][]struct {
			Tables []struct {
				Name string `json:"table_name"`
			} `json:"db_schema_tables"`
		}
		if err := json.Unmarshal(made, &found); err != nil {
			return nil, err
		}
		for _, schemas := range found {
			for _, each := range schemas {
				for _, table := range each.Tables {
					tables = append(tables, table.Name)
				}
			}
		}
	}
	described, err := rows("DESCRIBE main.matrix.shapes")
	for _, row := range described {
		columns = append(columns, row[0])
	}
	return object{"tables": tables, "columns": columns}, err
}

func seen(name string, statements []string) (any, error) {
	switch name {
	case "connect":
		return rows(statements[0])
	case "types", "nulls":
		found, err := rows(statements[0])
		if err != nil {
			return nil, err
		}
		return found[0], nil
	case "page", "large":
		return sum(statements[0])
	case "cancel":
		return cancelled(statements[0])
	case "error":
		_, err := rows(statements[0])
		return object{"text": fmt.Sprint(err)}, nil
	case "metadata":
		return metadata()
	case "write":
		return written(statements)
	}
	return nil, fmt.Errorf("no case %s", name)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if strings.HasSuffix(module.Path, "arrow-adbc/go/adbc") {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return ""
}

func main() {
	var order struct {
		Https, Path, Ca string
		Cases           map[string][]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		panic(err)
	}
	os.Setenv("SSL_CERT_FILE", order.Ca) // for links, which do not heed the driver's own option
	place, err := url.Parse(order.Https)
	if err != nil {
		panic(err)
	}
	database, err := databricks.NewDriver(memory.DefaultAllocator).NewDatabase(map[string]string{
		databricks.OptionServerHostname: place.Hostname(),
		databricks.OptionPort:           place.Port(),
		databricks.OptionHTTPPath:       order.Path,
		databricks.OptionAccessToken:    "none-needed",
		databricks.OptionSSLRootCert:    order.Ca,
	})
	if err != nil {
		panic(err)
	}
	if connection, err = database.Open(context.Background()); err != nil {
		panic(err)
	}
	say := json.NewEncoder(os.Stdout)
	say.Encode(object{"version": version()})
	for name, statements := range order.Cases {
		what, err := seen(name, statements)
		line := object{"case": name, "seen": what}
		if err != nil {
			line = object{"case": name, "failed": err.Error()}
		}
		say.Encode(line)
	}
}
