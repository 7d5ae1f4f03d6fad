// The cases through databricks-sdk-go's statement execution: reads the order from standard input, writes the lines of say.py.
package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/databricks/databricks-sdk-go"
	"github.com/databricks/databricks-sdk-go/service/sql"
)

type object = map[string]any

var (
	api sql.StatementExecutionInterface
	all = context.Background()
)

// A statement's answer once it has ended.
func ended(answer *sql.StatementResponse, err error) (*sql.StatementResponse, error) {
	for err == nil && (answer.Status.State == sql.StatementStatePending || answer.Status.State == sql.StatementStateRunning) {
		time.Sleep(200 * time.Millisecond)
		answer, err = api.GetStatementByStatementId(all, answer.StatementId)
	}
	if err == nil && answer.Status.State != sql.StatementStateSucceeded {
		told := string(answer.Status.State)
		if answer.Status.Error != nil {
			told += ": " + answer.Status.Error.Message
		}
		return nil, errors.New(told)
	}
	return answer, err
}

// Rows as texts of JSON, NULL as "NULL", chunk by chunk.
func chunks(statement string, take func([]string), values ...sql.StatementParameterListItem) error {
	answer, err := ended(api.ExecuteStatement(all, sql.ExecuteStatementRequest{
		WarehouseId: "gateway", Statement: statement, WaitTimeout: "30s", Parameters: values,
	}))
	if err != nil {
		return err
	}
	for chunk := answer.Result; chunk != nil; {
		for _, row := range chunk.DataArray {
			take(row)
		}
		if chunk.NextChunkIndex == 0 {
			return nil
		}
		chunk, err = api.GetStatementResultChunkNByStatementIdAndChunkIndex(all, answer.StatementId, chunk.NextChunkIndex)
		if err != nil {
			return err
		}
	}
	return nil
}

func rows(statement string, values ...sql.StatementParameterListItem) ([][]string, error) {
	found := [][]string{}
	err := chunks(statement, func(row []string) { found = append(found, row) }, values...)
	return found, err
}

func sum(statement string) (any, error) {
	count, total := 0, int64(0)
	err := chunks(statement, func(row []string) {
		id, _ := strconv.ParseInt(row[0], 10, 64)
		count++
		total += id
	})
	return object{"rows": count, "sum": total}, err
}

// Times and bytes as the other programs write them; the SDK has one text for NULL and for one without letters.
func plain(name string, value string) string {
	if value == "" {
		return "NULL"
	}
	switch name {
	case "c_timestamp", "c_timestamp_ntz":
		return strings.TrimRight(strings.TrimSuffix(strings.Replace(value, "T", " ", 1), "Z"), "0")
	case "c_binary":
		if data, err := base64.StdEncoding.DecodeString(value); err == nil {
			return hex.EncodeToString(data)
		}
	}
	return value
}

func one(statement string) (any, error) {
	answer, err := ended(api.ExecuteStatement(all, sql.ExecuteStatementRequest{
		WarehouseId: "gateway", Statement: statement, WaitTimeout: "30s",
	}))
	if err != nil {
		return nil, err
	}
	texts := []string{}
	for i, value := range answer.Result.DataArray[0] {
		texts = append(texts, plain(answer.Manifest.Schema.Columns[i].Name, value))
	}
	return texts, nil
}

func cancelled(statement string) (any, error) {
	started, err := api.ExecuteStatement(all, sql.ExecuteStatementRequest{
		WarehouseId: "gateway", Statement: statement, WaitTimeout: "0s",
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Second)
	start := time.Now()
	if err := api.CancelExecution(all, sql.CancelExecutionRequest{StatementId: started.StatementId}); err != nil {
		return nil, err
	}
	how := "rows"
	if _, err := ended(api.GetStatementByStatementId(all, started.StatementId)); err != nil {
		how = "error"
	}
	after, err := rows("SELECT 1")
	if err != nil {
		return nil, err
	}
	return object{"ended": how, "seconds": time.Since(start).Seconds(), "after": after[0][0]}, nil
}

func written(statements []string) (any, error) {
	var seen any
	for _, statement := range statements {
		found, err := rows(statement)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(statement, "SELECT") {
			seen = found
		}
	}
	return seen, nil
}

func column(statement string, at int) ([]string, error) {
	found, err := rows(statement)
	names := []string{}
	for _, row := range found {
		names = append(names, row[at])
	}
	return names, err
}

func metadata() (any, error) {
	tables, err := column("SHOW TABLES IN main.matrix", 1)
	if err != nil {
		return nil, err
	}
	columns, err := column("DESCRIBE main.matrix.shapes", 0)
	return object{"tables": tables, "columns": columns}, err
}

func seen(name string, statements []string) (any, error) {
	switch name {
	case "connect":
		return rows(statements[0])
	case "types", "nulls":
		return one(statements[0])
	case "page", "large":
		return sum(statements[0])
	case "cancel":
		return cancelled(statements[0])
	case "error":
		_, err := rows(statements[0])
		return object{"text": fmt.Sprint(err)}, nil
	case "metadata":
		return metadata()
	case "parameters":
		named := strings.Replace(strings.Replace(statements[0], "{}", ":n", 1), "{}", ":s", 1)
		return rows(named, sql.StatementParameterListItem{Name: "n", Value: "41", Type: "INT"},
			sql.StatementParameterListItem{Name: "s", Value: "o'b"})
	case "write":
		return written(statements)
	}
	return nil, fmt.Errorf("no case %s", name)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if strings.HasSuffix(module.Path, "databricks-sdk-go") {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return ""
}

func main() {
	var order struct {
		Http  string
		Cases map[string][]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		panic(err)
	}
	client, err := databricks.NewWorkspaceClient(&databricks.Config{
		Host: order.Http, Token: "none-needed", ConfigFile: "/dev/null",
	})
	if err != nil {
		panic(err)
	}
	api = client.StatementExecution
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
