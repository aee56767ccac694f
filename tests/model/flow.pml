/* Model of what `flow` adds: a wakeup goes to an idle CPU, a CPU that runs out of work looks for a queue
 * (sched/policies/flow.c; wake_place, board_in_flight, idle_pull), with drain's pass as the backstop.
 *
 * Three CPUs, four threads that run, block and wake at any time, EVENTS times altogether; then the outside falls silent,
 * everything under way is completed, and every CPU with a queue makes one pass.
 *
 * Checked at the end: no CPU is idle while another has a waiting thread: a violation lasts one interval at most.
 * With -DSTRONG (nothing wakes, threads only finish; the victim's lock is waited for, or the look is repeated): the same without
 * the pass, so that pulls alone keep the CPUs busy.  A pull that gives up at a taken lock does not (mutant 4).
 *
 * MUTANT: 1 no backstop   2 in flight not counted: an idle CPU collects several wakeups
 *         3 pull takes without looking again under the lock   4 (STRONG) gives up when the lock is taken
 *         5 (STRONG) pull takes a CPU's last thread */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NC 3
#define EVENTS 5

bool running[NC];
byte queued[NC];
byte flying[NC];
bool lk[NC];
byte blocked, events, looking;
byte most_flying;

#define idle(c) (!running[c] && queued[c] == 0 && flying[c] == 0)
#if MUTANT == 2
#define looks_idle(c) (!running[c] && queued[c] == 0)
#else
#define looks_idle(c) idle(c)
#endif
#define overloaded(c) (running[c] && queued[c] > 0)
#define quiet (events == 0 && looking == 0 && flying[0] + flying[1] + flying[2] == 0)

proctype waker()
{
    byte to;

    do
    :: atomic { events > 0 && blocked > 0 ->
            events--;
            blocked--;
            if /* the idle bit is cleared with the choice: choice and count are one step */
            :: looks_idle(0) -> to = 0
            :: looks_idle(1) -> to = 1
            :: looks_idle(2) -> to = 2
            :: !looks_idle(0) && !looks_idle(1) && !looks_idle(2) -> to = 0
            :: !looks_idle(0) && !looks_idle(1) && !looks_idle(2) -> to = 1
            fi;
            assert(!(flying[to] > 0 && (idle(0) || idle(1) || idle(2)))); /* nobody is sent behind another while a CPU is idle */
            flying[to] = flying[to] + 1
        }
    :: events == 0 -> break
    :: atomic { events > 0 -> events-- } /* fewer events */
    od
}

proctype cpu(byte c)
{
    byte from;
    bool found;

end:
    do
    :: atomic { flying[c] > 0 -> /* arrives */
            flying[c] = flying[c] - 1;
            if
            :: running[c] -> queued[c] = queued[c] + 1
            :: else -> running[c] = true
            fi
        }
    :: atomic { running[c] && events > 0 -> /* the running thread blocks */
            events--;
            blocked++;
            running[c] = false;
            if
            :: queued[c] > 0 && !lk[c] -> queued[c] = queued[c] - 1; running[c] = true
            :: queued[c] == 0 -> looking++; found = true
            :: else -> queued[c] = queued[c] - 1; running[c] = true
            fi
        };
        if
        :: found ->
look:
            found = false;
            if /* filter and choice, without locks */
            :: c != 0 && overloaded(0) -> from = 0
            :: c != 1 && overloaded(1) -> from = 1
            :: c != 2 && overloaded(2) -> from = 2
#if MUTANT == 5
            :: c != 0 && flying[0] == 0 && running[0] -> from = 0
#endif
            :: else -> goto rest
            fi;
#ifdef STRONG
#if MUTANT == 4
            if
            :: atomic { !lk[from] -> lk[from] = true }
            :: lk[from] -> goto rest
            fi;
#else
            atomic { !lk[from] -> lk[from] = true };
#endif
#else
            if
            :: atomic { !lk[from] -> lk[from] = true }
            :: lk[from] -> goto rest
            fi;
#endif
            atomic { /* under the lock */
                if
#if MUTANT == 3
                :: true -> assert(queued[from] > 0); queued[from] = queued[from] - 1; running[c] = true
#elif MUTANT == 5
                :: queued[from] > 0 || running[from] ->
                    if
                    :: queued[from] > 0 -> queued[from] = queued[from] - 1
                    :: else -> running[from] = false; assert(false) /* took the last one */
                    fi;
                    running[c] = true
#else
                :: overloaded(from) && !running[c] -> queued[from] = queued[from] - 1; running[c] = true
#endif
                :: else -> found = true
                fi;
            };
            lk[from] = false;
#ifdef STRONG
            if
            :: found -> goto look /* another was faster: look again */
            :: else
            fi;
#endif
rest:
            atomic { found = false; from = 0; looking-- }
        :: else
        fi
    od
}

/* One pass of the backstop on CPU c. */
inline pass(c) {
    do
    :: queued[c] > 0 && (idle(0) || idle(1) || idle(2)) ->
        queued[c] = queued[c] - 1;
        if
        :: idle(0) -> running[0] = true
        :: idle(1) -> running[1] = true
        :: idle(2) -> running[2] = true
        fi
    :: else -> break
    od
}

init {
    atomic {
        if
        :: running[0] = true; queued[0] = 3
        :: running[0] = true; running[1] = true; queued[0] = 2
        :: running[0] = true; running[1] = true; running[2] = true; queued[0] = 1
        :: running[0] = true; running[1] = true; queued[0] = 1; queued[1] = 1
        fi;
        events = EVENTS;
#ifdef STRONG
        /* all busy at the start: nobody has yet been idle beside a queue */
        running[0] = true;
        running[1] = true;
        running[2] = true;
        queued[1] = 0;
        queued[0] = 3;
#else
        run waker();
#endif
        run cpu(0);
        run cpu(1);
        run cpu(2)
    };
#ifdef STRONG
    do
    :: atomic { events > 0 -> events-- }
    :: events == 0 -> break
    od;
#endif
    atomic {
        quiet ->
#if !defined(STRONG) && MUTANT != 1
        pass(0);
        pass(1);
        pass(2);
#endif
        assert(!(idle(0) || idle(1) || idle(2)) || (queued[0] == 0 && queued[1] == 0 && queued[2] == 0))
    }
}
