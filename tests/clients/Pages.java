import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;

/** Reads rows (id, text) through a JDBC driver: arguments are URL, driver class, fetch size and statement. */
public class Pages {
    public static void main(String[] arguments) throws Exception {
        Class.forName(arguments[1]);
        long row = 0;
        try (Connection connection = DriverManager.getConnection(arguments[0], "token", "none-needed");
                Statement statement = connection.createStatement()) {
            statement.setFetchSize(Integer.parseInt(arguments[2]));
            try (ResultSet result = statement.executeQuery(arguments[3])) {
                while (result.next()) {
                    String text = row % 7 == 3 ? null : "row " + row;
                    String found = result.getString(2);
                    if (result.getLong(1) != row || (text == null ? found != null : !text.equals(found))) {
                        System.out.println("wrong at row " + row + ": " + result.getLong(1) + ", " + found);
                        return;
                    }
                    row++;
                }
            }
        }
        System.out.println("rows: " + row);
    }
}
