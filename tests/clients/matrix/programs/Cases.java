import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/**
 * The cases through a JDBC driver: arguments are URL, driver class, and name and statements of each case, statements ended by a
 * line with nothing but a semicolon. Writes the lines of say.py.
 */
public class Cases {
    private static Connection connection;

    public static void main(String[] arguments) throws Exception {
        Class.forName(arguments[1]);
        connection = DriverManager.getConnection(arguments[0], "token", "none-needed");
        DatabaseMetaData about = connection.getMetaData();
        System.out.println("{\"version\": " + quoted(about.getDriverVersion()) + "}");
        for (int i = 2; i < arguments.length; i += 2) {
            String name = arguments[i];
            String line;
            try {
                line = "\"seen\": " + seen(name, arguments[i + 1].split("\n;\n"));
            } catch (Exception error) {
                line = "\"failed\": " + quoted(error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            System.out.println("{\"case\": " + quoted(name) + ", " + line + "}");
        }
        connection.close();
        System.exit(0);
    }

    private static String seen(String name, String[] statements) throws Exception {
        switch (name) {
            case "connect":
                return rows(statements[0]);
            case "types":
            case "nulls":
                String all = rows(statements[0]);
                return all.substring(1, all.length() - 1);
            case "page":
                return sum(statements[0], 1000);
            case "large":
                return sum(statements[0], 100000);
            case "cancel":
                return cancel(statements[0]);
            case "error":
                try {
                    rows(statements[0]);
                } catch (SQLException error) {
                    return "{\"text\": " + quoted(error.getMessage()) + ", \"state\": " + quoted(error.getSQLState()) + "}";
                }
                return "{\"text\": \"none\"}";
            case "metadata":
                DatabaseMetaData about = connection.getMetaData();
                return "{\"tables\": " + names(about.getTables("main", "matrix", "%", null), "TABLE_NAME") + ", \"columns\": "
                        + names(about.getColumns("main", "matrix", "shapes", "%"), "COLUMN_NAME") + "}";
            case "parameters":
                try (PreparedStatement statement = connection.prepareStatement(statements[0].replace("{}", "?"))) {
                    statement.setInt(1, 41);
                    statement.setString(2, "o'b");
                    return rows(statement.executeQuery());
                }
            case "write":
                String seen = null;
                for (String one : statements) {
                    if (one.startsWith("SELECT")) {
                        seen = rows(one);
                    } else {
                        try (Statement statement = connection.createStatement()) {
                            statement.executeUpdate(one);
                        }
                    }
                }
                return seen;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static String rows(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }

    private static String rows(ResultSet result) throws SQLException {
        ResultSetMetaData columns = result.getMetaData();
        List<String> rows = new ArrayList<>();
        while (result.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                row.add(quoted(text(result, i, columns.getColumnType(i))));
            }
            rows.add("[" + String.join(", ", row) + "]");
        }
        return "[" + String.join(", ", rows) + "]";
    }

    private static String text(ResultSet result, int column, int type) throws SQLException {
        if (type == Types.BINARY || type == Types.VARBINARY || type == Types.LONGVARBINARY) {
            Object value = result.getObject(column);
            return value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : String.valueOf(value).toUpperCase();
        }
        String text = result.getString(column);
        if (text == null || result.wasNull()) {
            return "NULL";
        }
        if (type == Types.TIMESTAMP || type == Types.TIMESTAMP_WITH_TIMEZONE) {
            return text.replaceAll("0+$", "");
        }
        return type == Types.BOOLEAN || type == Types.BIT ? text.toLowerCase(Locale.ROOT).replace("1", "true") : text;
    }

    private static String sum(String sql, int size) throws SQLException {
        long rows = 0;
        long total = 0;
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(size);
            try (ResultSet result = statement.executeQuery(sql)) {
                while (result.next()) {
                    rows++;
                    total += result.getLong(1);
                }
            }
        }
        return "{\"rows\": " + rows + ", \"sum\": " + total + "}";
    }

    private static String cancel(String sql) throws Exception {
        String[] ended = {"nothing"};
        long seconds;
        try (Statement statement = connection.createStatement()) {
            Thread thread = new Thread(() -> {
                try {
                    statement.executeQuery(sql).next();
                    ended[0] = "rows";
                } catch (Exception error) {
                    ended[0] = "error";
                }
            });
            thread.start();
            Thread.sleep(12000); // drivers know a statement once its call has come back, which they ask to be held for ten seconds
            long start = System.currentTimeMillis();
            statement.cancel();
            thread.join(60000);
            seconds = (System.currentTimeMillis() - start) / 1000;
        }
        String after = rows("SELECT 1");
        return "{\"ended\": " + quoted(ended[0]) + ", \"seconds\": " + seconds + ", \"after\": "
                + after.substring(2, after.length() - 2) + "}";
    }

    private static String names(ResultSet result, String column) throws SQLException {
        List<String> names = new ArrayList<>();
        while (result.next()) {
            names.add(quoted(result.getString(column)));
        }
        return "[" + String.join(", ", names) + "]";
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder made = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            made.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return made.append('"').toString();
    }
}
