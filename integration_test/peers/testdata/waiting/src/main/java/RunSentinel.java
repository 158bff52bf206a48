import com.alibaba.csp.sentinel.Entry;
import com.alibaba.csp.sentinel.SphU;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.RuleConstant;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRuleManager;
import java.util.List;

/** Has one rule at a time, as whoever loads rules starts all of them anew. */
class RunSentinel {
    static final ThreadLocal<Entry> held = new ThreadLocal<>();

    public static void main(String[] args) throws Exception {
        Program.run(call -> {
            String resource = call[2];
            switch (call[1]) {
                case "queue": // count a second, longest wait in ms
                    return load(rule(resource, RuleConstant.FLOW_GRADE_QPS, call[3]).setControlBehavior(RuleConstant.CONTROL_BEHAVIOR_RATE_LIMITER)
                        .setMaxQueueingTimeMs(Integer.parseInt(call[4])));
                case "warmup": // count a second, seconds to warm up, longest wait in ms
                    return load(rule(resource, RuleConstant.FLOW_GRADE_QPS, call[3]).setControlBehavior(RuleConstant.CONTROL_BEHAVIOR_WARM_UP_RATE_LIMITER)
                        .setWarmUpPeriodSec(Integer.parseInt(call[4])).setMaxQueueingTimeMs(Integer.parseInt(call[5])));
                case "threads": // count
                    return load(rule(resource, RuleConstant.FLOW_GRADE_THREAD, call[3]));
                case "rate": // count a second
                    return load(rule(resource, RuleConstant.FLOW_GRADE_QPS, call[3]));
                case "pass":
                    return "" + enter(() -> SphU.entry(resource).exit());
                case "occupy":
                    return "" + enter(() -> SphU.entryWithPriority(resource).exit());
                case "enter":
                    return "" + enter(() -> held.set(SphU.entry(resource)));
                case "exit":
                    held.get().exit();
                    return "true";
            }
            throw new IllegalArgumentException(call[1]);
        });
    }

    interface Entering {
        void run() throws BlockException;
    }

    static boolean enter(Entering entering) {
        try {
            entering.run();
            return true;
        } catch (BlockException e) {
            return false;
        }
    }

    static FlowRule rule(String resource, int grade, String count) {
        return new FlowRule(resource).setGrade(grade).setCount(Double.parseDouble(count));
    }

    static String load(FlowRule rule) {
        FlowRuleManager.loadRules(List.of(rule));
        return "made";
    }
}
