package fuzz;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Answers statements with JSON, in the notation of `probe_runner.canonical`: one call for many statements, no job for rows that
 * the optimizer knows, no Arrow, no text of a stack. Compiled when the JVM starts, by the compiler that Spark brings for its own
 * generated code: it takes no lambdas, no generics that must be inferred.
 */
public final class Oracle {
    private static final int LONGEST_CHAIN = 8;
    private static final long LONGEST_MILLISECONDS = 10000;
    private static final Timer TIMER = new Timer("longest", true);

    /** Statements that depend on each other, none after the first that fails; the last one has the arguments. */
    public static String inOrder(SparkSession session, List texts, Object arguments) {
        return all(session, texts, arguments, true);
    }

    /** Statements that have nothing to do with each other. */
    public static String each(SparkSession session, List texts) {
        return all(session, texts, null, false);
    }

    private static String all(SparkSession session, List texts, Object arguments, boolean related) {
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < texts.size(); i++) {
            int before = out.append(i == 0 ? "" : ",").length();
            Watch watch = new Watch(session, Thread.currentThread());
            try {
                TIMER.schedule(watch, LONGEST_MILLISECONDS, LONGEST_MILLISECONDS);
                answer(session, (String) texts.get(i), i == texts.size() - 1 ? arguments : null, out);
                watch.over();
            } catch (Throwable error) {
                watch.over();
                Thread.interrupted();
                out.setLength(before);
                failure(error, out);
                if (related) {
                    break;
                }
            }
        }
        return out.append("]").toString();
    }

    private static void answer(SparkSession session, String text, Object arguments, StringBuilder out) {
        Dataset frame;
        if (arguments instanceof Map) {
            frame = session.sql(text, (Map) arguments);
        } else if (arguments instanceof List) {
            frame = session.sql(text, (Object) ((List) arguments).toArray());
        } else {
            frame = session.sql(text);
        }
        StructType schema = frame.schema();
        out.append("{\"schema\":").append(schema.json()).append(",\"rows\":[");
        InternalRow[] rows = collected(session, frame.queryExecution());
        for (int i = 0; i < rows.length; i++) {
            out.append(i == 0 ? "[" : ",[");
            for (int j = 0; j < schema.fields().length; j++) {
                out.append(j == 0 ? "" : ",");
                value(rows[i], j, schema.fields()[j].dataType(), out);
            }
            out.append("]");
        }
        out.append("]}");
    }

    /** Ends what takes too long: its jobs first, then the thread, which no folding of constants looks up from. */
    private static final class Watch extends TimerTask {
        private final SparkSession session;
        private final Thread asking;
        private boolean over;
        private boolean cancelled;

        Watch(SparkSession session, Thread asking) {
            this.session = session;
            this.asking = asking;
        }

        synchronized void over() {
            over = true;
            cancel();
        }

        public synchronized void run() {
            if (over) {
                return;
            }
            if (cancelled) {
                asking.stop();
                over();
            }
            cancelled = true;
            session.sparkContext().cancelAllJobs();
        }
    }

    /** Tasks read the session's settings from properties, which are set around what starts them. */
    private static InternalRow[] collected(final SparkSession session, final QueryExecution execution) {
        return (InternalRow[]) SQLExecution.withSQLConfPropagated(session, new scala.runtime.AbstractFunction0() {
            public Object apply() {
                return execution.executedPlan().executeCollect();
            }
        });
    }

    private static void failure(Throwable error, StringBuilder out) {
        String condition = null;
        String state = null;
        String message = String.valueOf(error.getMessage()).trim();
        Throwable cause = error;
        for (int i = 0; i < LONGEST_CHAIN && cause != null; i++, cause = cause.getCause()) {
            if (cause instanceof OutOfMemoryError || String.valueOf(cause.getMessage()).contains("OutOfMemoryError")) {
                condition = "RESOURCE_EXHAUSTED";
                break;
            }
            if (condition == null && cause instanceof SparkThrowable && ((SparkThrowable) cause).getCondition() != null) {
                condition = ((SparkThrowable) cause).getCondition();
                state = ((SparkThrowable) cause).getSqlState();
                message = String.valueOf(cause.getMessage()).trim();
            }
        }
        if (error instanceof ThreadDeath || condition == null && message.contains("cancelled")) {
            condition = "OPERATION_CANCELED";
        }
        out.append("{\"condition\":");
        quoted(condition == null ? "INTERNAL_ERROR" : condition, out);
        out.append(",\"sqlstate\":");
        quoted(state == null ? "" : state, out);
        out.append(",\"message\":");
        quoted((condition == null ? error.toString() : message).split("\n")[0], out);
        out.append("}");
    }

    private static void value(SpecializedGetters row, int at, DataType type, StringBuilder out) {
        if (row.isNullAt(at) || type instanceof NullType) {
            out.append("null");
        } else if (type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
            || type instanceof IntegerType || type instanceof LongType || type instanceof DoubleType) {
            out.append(row.get(at, type));
        } else if (type instanceof FloatType) {
            out.append((double) row.getFloat(at));
        } else if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            BigDecimal number = row.getDecimal(at, decimal.precision(), decimal.scale()).toJavaBigDecimal();
            out.append("{\"d\":\"").append(number.setScale(decimal.scale()).toPlainString()).append("\"}");
        } else if (type instanceof StringType) {
            quoted(row.getUTF8String(at).toString(), out);
        } else if (type instanceof BinaryType) {
            out.append("{\"b\":\"");
            byte[] bytes = row.getBinary(at);
            for (int i = 0; i < bytes.length; i++) {
                out.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
            }
            out.append("\"}");
        } else if (type instanceof DateType) {
            out.append("{\"dt\":").append(row.getInt(at)).append("}");
        } else if (type instanceof TimestampType || type instanceof TimestampNTZType) {
            out.append("{\"ts\":[").append(row.getLong(at)).append(type instanceof TimestampType ? ",\"Z\"]}" : ",\"\"]}");
        } else if (type instanceof YearMonthIntervalType) {
            out.append("{\"iv\":[").append(row.getInt(at)).append(",0,0]}");
        } else if (type instanceof DayTimeIntervalType) {
            out.append("{\"iv\":[0,0,").append(row.getLong(at)).append("]}");
        } else if (type instanceof ArrayType) {
            values(row.getArray(at), ((ArrayType) type).elementType(), out);
        } else if (type instanceof MapType) {
            pairs(row.getMap(at), (MapType) type, out);
        } else if (type instanceof StructType) {
            fields(row.getStruct(at, ((StructType) type).fields().length), (StructType) type, out);
        } else if (type instanceof CalendarIntervalType) {
            quoted(((CalendarInterval) row.get(at, type)).toString(), out);
        } else if (type instanceof VariantType) {
            out.append("{\"v\":");
            quoted(((VariantVal) row.get(at, type)).toString(), out);
            out.append('}');
        } else {
            throw new UnsupportedOperationException("No notation for " + type.sql());
        }
    }

    private static void values(ArrayData array, DataType type, StringBuilder out) {
        out.append("[");
        for (int i = 0; i < array.numElements(); i++) {
            out.append(i == 0 ? "" : ",");
            value(array, i, type, out);
        }
        out.append("]");
    }

    private static void pairs(MapData map, MapType type, StringBuilder out) {
        out.append("{\"m\":[");
        for (int i = 0; i < map.numElements(); i++) {
            out.append(i == 0 ? "[" : ",[");
            value(map.keyArray(), i, type.keyType(), out);
            out.append(",");
            value(map.valueArray(), i, type.valueType(), out);
            out.append("]");
        }
        out.append("]}");
    }

    private static void fields(InternalRow row, StructType type, StringBuilder out) {
        out.append("{\"s\":[");
        for (int i = 0; i < type.fields().length; i++) {
            out.append(i == 0 ? "[" : ",[");
            quoted(type.fields()[i].name(), out);
            out.append(",");
            value(row, i, type.fields()[i].dataType(), out);
            out.append("]");
        }
        out.append("]}");
    }

    private static void quoted(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                out.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
