/* Model of parking, waking, idling, switching and migrating: sched/park*, wake.c, idle.c, switch.c, balance.c, pull.c.
 *
 * Every step that other CPUs can see between is a step here; what happens under a run-queue lock and is seen by nobody
 * else meanwhile is one.  Memory is sequentially consistent, as the accesses in question are in the source.
 *
 * Model                     source
 *   unpark                    wake_claim (W1, W2), wake_place (W3, W4), wake_send
 *   park                      take_token, park_blocked (P1 to P4)
 *   schedule                  schedule, put_previous, pick_next, schedule_finish
 *   drain                     wake_list_drain, arrive, enqueue_here
 *   pull                      idle_pull
 *   migrate                   carry_out, migrate_locked
 *   label idle                idle_loop, poll_a_while, arch_idle_wait
 *   irq_exit                  upcall_irq_exit
 *   device                    an interrupt that wakes a batch: thread_unpark_batch, wake_batch_flush
 *
 * Checked in every state (process watch, and assertions on the way):
 *   - no wakeup is lost: no thread stays blocked with its token set;
 *   - no CPU is blind to work: halted, or running a thread with interrupts on, with something on its wake list (or, halted,
 *     in its queue) and no interrupt on its way;
 *   - a thread is in one queue at most, and not while it runs; its context is live on one CPU at most;
 *   - it runs only where it is allowed;
 *   - no deadlock.
 * With -DLIVE: under weak fairness and a fair run queue a runnable thread runs in the end.
 *
 * MUTANT=n breaks one thing; each must be caught (run.py):
 *   1 park does not look at the token again   2 idle does not look again after polling   3 no IPI
 *   4 no IPI to a CPU that runs a thread      5 waker ignores on_cpu                      6 on_cpu cleared before the save
 *   7 token not tested, claim not atomic      8 enable and halt in two steps              9 pull without the victim's lock
 *  10 migration ignores affinity             11 run-queue lock dropped before the switch 12 pair of locks in the order own, other
 *  13 polling looked at before the push      14 batch flushed before the last wake       15 migration does not kick
 *  16 (LIVE) the run queue prefers one thread */
#ifndef NC
#define NC 2
#endif
#ifndef NT
#define NT 3
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define IDLE NT
#define RUNNING 0
#define RUNNABLE 1
#define WAKING 2
#define BLOCKED 3

/* Thread 0 may run on CPU 0 only, the others anywhere. */
#define allowed(t, c) ((t) != 0 || (c) == 0)
#define BITOF(t) (1 << (t))

byte state[NT];
bool token[NT];
bool on_cpu[NT];
byte cpu_of[NT];
bool in_park[NT]; /* where it resumes: inside park */
byte cur[NC];
bool lk[NC];
bool polling[NC];
bool ipi[NC];
bool need[NC];
byte wl[NC];      /* wake list: a set, the order is of no consequence */
byte rq[NC];      /* run queue: a set; which of them is next is left open (with -DLIVE: in turn) */
byte turn[NC];    /* LIVE: who ran last */

/* LIVE: a slice ends, and the balancer moves only from two or more to none. */
#ifdef LIVE
#define slice_left (acts < 2)
#define uneven(c) (cur[c] != IDLE && cur[(c + 1) % NC] == IDLE && rq[(c + 1) % NC] == 0 && wl[(c + 1) % NC] == 0)
#else
#define slice_left true
#define uneven(c) true
#endif

/* Ghosts: not in the source, for the checks only. */
bool live[NT];    /* a CPU holds its unsaved context */
byte mid[NT];     /* a waker between W1 and W2, a parker between P2 and P3 */
bool blind[NC];   /* looks at its list only if an interrupt comes */
bool halted[NC];
byte sending[NC]; /* an IPI was decided on, or is being decided on */

#define queued(c, t) ((rq[c] & BITOF(t)) != 0)
#define work(c) (wl[c] != 0 || rq[c] != 0 || need[c])

/* Into and out of the run queue of c: a thread is never there twice, nor taken when it is not there. */
inline put(where, who) { assert(!queued(where, who)); rq[where] = rq[where] | BITOF(who) }
inline take(where, who) { assert(queued(where, who)); rq[where] = rq[where] & ~BITOF(who) }

inline acquire(x) { atomic { !lk[x] -> lk[x] = true } }
inline release(x) { lk[x] = false }

inline drain(c) {
    v = 0;
    do
    :: v < NT ->
        if
        :: wl[c] & BITOF(v) ->
            assert(state[v] == WAKING);
            state[v] = RUNNABLE;
            cpu_of[v] = c;
            put(c, v)
        :: else
        fi;
        v++
    :: else -> break
    od;
    wl[c] = 0;
    v = 0
}

/* Sends t to CPU to: W4.  batch: the IPI waits for the flush. */
inline send(to, x, batch) {
    dst = to; /* by value: cpu_of may change as soon as it is pushed */
#if MUTANT == 13
    seen = polling[dst];
#endif
    d_step {
        cpu_of[x] = dst;
        empty_before = (wl[dst] == 0);
        assert(!(wl[dst] & BITOF(x)));
        wl[dst] = wl[dst] | BITOF(x);
        sending[dst] = sending[dst] + empty_before
    };
    if
    :: empty_before ->
#if MUTANT != 13
        seen = polling[dst];
#endif
        d_step {
            if
#if MUTANT == 3
            :: true -> sending[dst]--
#elif MUTANT == 4
            :: seen || cur[dst] != IDLE -> sending[dst]--
#else
            :: seen -> sending[dst]--
#endif
            :: else ->
                if
                :: !batch -> ipi[dst] = true; sending[dst]--
                :: batch && (flush & BITOF(dst)) -> sending[dst]--
                :: else -> flush = flush | BITOF(dst)
                fi
            fi
        }
    :: else
    fi;
    d_step { seen = false; empty_before = false; dst = 0 }
}

/* o becomes another CPU. */
inline other(c) {
    if
    :: o = (c + 1) % NC
#if NC > 2
    :: o = (c + 2) % NC
#endif
    fi
}

/* thread_unpark(x) on CPU c. */
inline unpark(c, x, batch) {
#if MUTANT == 7
    d_step { won = (state[x] == BLOCKED); token[x] = true };
    if
    :: won -> state[x] = WAKING
    :: else
    fi;
#else
    atomic { won = !token[x]; token[x] = true; mid[x] = mid[x] + won };
    if
    :: won -> d_step { won = (state[x] == BLOCKED); mid[x]--; if :: won -> state[x] = WAKING :: else fi }
    :: else
    fi;
#endif
    if
    :: won && on_cpu[x] && MUTANT != 5 -> send(cpu_of[x], x, batch)
    :: won && !(on_cpu[x] && MUTANT != 5) ->
        if /* the policy's choice: any CPU that is allowed */
        :: allowed(x, c) ->
            atomic {
                !lk[c] ->
                assert(state[x] == WAKING);
                state[x] = RUNNABLE;
                cpu_of[x] = c;
                put(c, x);
                need[c] = need[c] || cur[c] == IDLE
            }
        :: allowed(x, (c + 1) % NC) -> send((c + 1) % NC, x, batch)
#if NC > 2
        :: allowed(x, (c + 2) % NC) -> send((c + 2) % NC, x, batch)
#endif
        fi
    :: else
    fi;
    won = false
}

inline flush_batch(c) {
    d_step {
        v = 0;
        do
        :: v < NC ->
            if
            :: flush & BITOF(v) -> ipi[v] = true; sending[v]--
            :: else
            fi;
            v++
        :: else -> break
        od;
        flush = 0;
        v = 0
    }
}

/* idle_pull by CPU c, which holds its own lock; n becomes the thread or stays IDLE. */
inline pull(c) {
    other(c);
    if
    :: true /* the filter saw nothing, or the policy says no, or the lock was taken */
#if MUTANT != 9
    :: !lk[o] && cur[o] != IDLE && rq[o] != 0 ->
#else
    :: cur[o] != IDLE && rq[o] != 0 ->
#endif
        if
        :: allowed(0, c) && queued(o, 0) -> n = 0
        :: queued(o, 1) -> n = 1
#if NT > 2
        :: queued(o, 2) -> n = 2
#endif
        :: else
        fi;
        if
        :: n != IDLE -> take(o, n); cpu_of[n] = c
        :: else
        fi
    fi;
    o = 0
}

/* n becomes one of the threads queued here. */
inline pick(c) {
#ifdef LIVE
#if MUTANT == 16
    turn[c] = NT - 1;
#endif
    do
    :: turn[c] = (turn[c] + 1) % NT;
        if
        :: queued(c, turn[c]) -> break
        :: else
        fi
    od;
    n = turn[c];
#else
    if
    :: queued(c, 0) -> n = 0
    :: queued(c, 1) -> n = 1
#if NT > 2
    :: queued(c, 2) -> n = 2
#endif
    fi;
#endif
    take(c, n)
}

/* From taking the run-queue lock to the moment before the switch is one step: whoever could see between would have to hold
 * the lock, and a push onto the wake list in between is the same as one just before. */
inline schedule(c) {
    atomic {
        !lk[c] -> lk[c] = true;
        need[c] = false;
        if
        :: cur[c] != IDLE && state[cur[c]] == RUNNING ->
            state[cur[c]] = RUNNABLE;
            put(c, cur[c])
        :: else
        fi;
        drain(c);
        n = IDLE;
#if MUTANT == 9
    }
    other(c);
    if
    :: atomic { rq[c] != 0 -> pick(c) }
    :: rq[c] == 0 ->
        if /* chosen now, taken later, both without the lock */
        :: cur[o] != IDLE && queued(o, 1) -> n = 1; d_step { rq[o] = rq[o] & ~BITOF(1); cpu_of[n] = c }
        :: true
        fi
    fi;
    atomic {
#else
        if
        :: rq[c] != 0 -> pick(c)
        :: else -> pull(c)
        fi;
#endif
        prev = cur[c];
        cur[c] = n;
        if
        :: n != IDLE ->
            assert(state[n] == RUNNABLE);
            assert(allowed(n, c));
            state[n] = RUNNING
        :: else
        fi;
        if
        :: n != prev && n != IDLE ->
            assert(!live[n]); /* else it would run twice */
            live[n] = true;
            on_cpu[n] = true;
            cpu_of[n] = c
        :: else
        fi;
#if MUTANT == 11
        release(c);
#endif
        n = 0
    }
#if MUTANT == 6
    if
    :: cur[c] != prev && prev != IDLE -> on_cpu[prev] = false
    :: else
    fi;
#endif
    d_step { /* the context is saved; then on_cpu is cleared, then the lock is dropped */
        if
        :: cur[c] != prev && prev != IDLE ->
            live[prev] = false;
            on_cpu[prev] = false
        :: else
        fi;
#if MUTANT != 11
        release(c);
#endif
        prev = 0
    }
}

/* A pass of the balancer on CPU c: one move of a queued thread (each move takes and drops the locks of its own). */
inline migrate(c) {
#if MUTANT == 12
    other(c);
    acquire(c);
    acquire(o);
    atomic {
#else
    atomic {
        other(c);
        !lk[c] && !lk[o]; /* in CPU order: nobody waits for one while he holds the other */
#endif
        n = IDLE;
        if
        :: MUTANT != 10 && allowed(0, o) && queued(c, 0) -> n = 0
        :: MUTANT == 10 && queued(c, 0) -> n = 0
        :: queued(c, 1) -> n = 1
#if NT > 2
        :: queued(c, 2) -> n = 2
#endif
        :: else
        fi;
        if
        :: n != IDLE ->
            assert(state[n] == RUNNABLE);
            take(c, n);
            cpu_of[n] = o;
            won = (cur[o] == IDLE || rq[o] == 0);
            put(o, n);
            sending[o] = sending[o] + won
        :: else
        fi;
        n = 0
    };
    d_step {
        if
        :: won ->
            sending[o]--;
#if MUTANT != 15
            need[o] = true;
            ipi[o] = true
#endif
        :: else
        fi;
#if MUTANT == 12
        release(c);
        release(o);
#endif
        won = false;
        o = 0
    }
}

/* MUTANT 14: the IPIs of what was woken after the flush are forgotten. */
inline forget_batch() {
    d_step {
        v = 0;
        do
        :: v < NC ->
            if
            :: flush & BITOF(v) -> sending[v]--
            :: else
            fi;
            v++
        :: else -> break
        od;
        flush = 0;
        v = 0
    }
}

/* An interrupt that wakes one or two threads. */
inline device(c) {
    if
    :: t = 0
    :: t = 1
#if NT > 2
    :: t = 2
#endif
    fi;
#if MUTANT == 14
    unpark(c, t, 1);
    flush_batch(c);
    t = 1;
    unpark(c, t, 1);
    forget_batch();
#else
    unpark(c, t, 1);
    if
    :: t = 1; unpark(c, t, 1)
    :: true
    fi;
    flush_batch(c);
#endif
    t = 0
}

proctype cpu(byte c)
{
    byte t, n, v, o, prev, flush, dst;
#ifdef LIVE
    byte acts; /* of the running thread in its slice */
#endif
    bool won, empty_before, seen;

idle: /* interrupts off */
    if
    :: work(c) -> goto leave_idle
    :: else
    fi;
    polling[c] = true;
    if /* interrupts on while it polls */
    :: atomic { ipi[c] -> ipi[c] = false }
#ifdef DEVICE
    :: device(c)
#endif
    :: true
    fi;
    polling[c] = false;
#if MUTANT == 2
    goto halt;
#endif
recheck:
    if
    :: work(c) -> goto leave_idle
    :: else
    fi;
#if MUTANT == 2
halt:
    skip;
#endif
#if MUTANT == 8
    /* enabled, not yet halted: a pending interrupt is taken here, and the halt does not see it */
    if
    :: ipi[c] -> ipi[c] = false
    :: else
    fi;
#endif
    d_step { blind[c] = true; halted[c] = true };
end_halted:
    if
    :: atomic { ipi[c] -> ipi[c] = false; blind[c] = false; halted[c] = false }
#ifdef DEVICE
    :: atomic { blind[c] = false; halted[c] = false }; device(c)
#endif
    fi;
    goto recheck;
leave_idle:
    schedule(c);
resumed: /* on the stack of cur[c] now */
#ifdef LIVE
    acts = 0;
#endif
    if
    :: cur[c] == IDLE -> goto idle
    :: else
    fi;
    if
    :: in_park[cur[c]] -> d_step { in_park[cur[c]] = false; token[cur[c]] = false }
    :: else
    fi;
user: /* interrupts on */
    blind[c] = true;
    if
    :: atomic { ipi[c] -> ipi[c] = false; blind[c] = false }; goto irq_exit
    :: atomic { /* wakes another thread */
            (slice_left);
            blind[c] = false;
            if
            :: t = 0
            :: t = 1
#if NT > 2
            :: t = 2
#endif
            fi
        };
        unpark(c, t, 0);
        t = 0;
        goto irq_exit /* preempt_enable looks like the end of an interrupt does */
    :: d_step { blind[c] = false; won = token[cur[c]]; token[cur[c]] = false }; /* parks: P1 */
        if
        :: won -> won = false; goto user
        :: else
        fi;
        d_step { state[cur[c]] = BLOCKED; mid[cur[c]]++ }; /* P2 */
        won = token[cur[c]]; /* P3, its look ... */
        d_step { /* ... and its compare-and-swap */
            won = (won && state[cur[c]] == BLOCKED && MUTANT != 1);
            mid[cur[c]]--;
            if
            :: won -> state[cur[c]] = RUNNING; token[cur[c]] = false
            :: else -> in_park[cur[c]] = true
            fi
        };
        if
        :: won -> won = false; goto user
        :: else
        fi;
        schedule(c);
        goto resumed
    :: blind[c] = false; /* its slice is over, or it yields */
        schedule(c);
        goto resumed
#ifdef MIGRATE
    :: atomic { (slice_left && uneven(c)); blind[c] = false };
        migrate(c);
        goto irq_exit
#endif
#ifdef DEVICE
    :: blind[c] = false;
        device(c);
        goto irq_exit
#endif
    fi;
irq_exit:
#ifdef LIVE
    acts++;
#endif
    if
    :: wl[c] != 0 -> atomic { !lk[c] -> drain(c) }
    :: else
    fi;
    if
    :: need[c] -> schedule(c); goto resumed
    :: else -> goto user
    fi;
}

#define lost(t) (state[t] == BLOCKED && token[t] && mid[t] == 0)
#define unseen(c) (blind[c] && !ipi[c] && sending[c] == 0 && !polling[c] && (wl[c] != 0 || (halted[c] && rq[c] != 0)))

active proctype watch()
{
end:
    atomic {
        lost(0) || lost(1) || lost(NT - 1) || unseen(0) || unseen(1) || unseen(NC - 1) ->
        assert(!lost(0) && !lost(1) && !lost(NT - 1));
        assert(!unseen(0) && !unseen(1) && !unseen(NC - 1))
    }
}

init {
    atomic {
        byte i = 0;
        do
        :: i < NT -> state[i] = RUNNABLE; rq[0] = rq[0] | BITOF(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < NC -> cur[i] = IDLE; run cpu(i); i++
        :: else -> break
        od
    }
}

#ifdef LIVE
#define is_runnable (state[1] == RUNNABLE || state[1] == WAKING)
#define is_running (state[1] == RUNNING)
ltl runs { [] (is_runnable -> <> is_running) }
#endif
