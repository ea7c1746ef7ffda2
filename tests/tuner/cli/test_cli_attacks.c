/* Wrong variants that passed every gate once (results/notes.md, "Attacks on the gates"), a folder
 * each in tests/tuner/attacks: a kernel, a task and a genome. The edits refuse some of them, write
 * others right now, and the stress finds the rest. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli_run.h"

#define FOLDER "tests/tuner/attacks"
#define APPLIED "tests/tuner/applied"

/* `refused`: what the edit's refusal says; NULL: the edit applies. `stress`: the shapes within
 * which the stress finds the variant wrong; NULL: the variant is right at the task's cases, of
 * which one was wrong once. */
static const struct attack {
    const char *name, *refused, *stress;
} attacks[] = {
    {"block", NULL, NULL},
    {"break", "a turn of the loop may leave it before the next one loads", NULL},
    {"byte", NULL, NULL},
    {"bytes", "the threads of a block hardly load the same values in a tile", NULL},
    {"const", "no loads can go out before values of others are used", NULL},
    {"div", NULL, NULL},
    {"dynamic", "a launch takes 4 * a * b bytes of dynamic shared memory already", NULL},
    {"first", "the first thread of a block may end early where others do not", NULL},
    {"fwd", "launches may pass one buffer for an argument that the kernel loads from", NULL},
    {"inplace", "no load from an argument that the kernel does not write", NULL},
    {"ints", "no load from an argument that the kernel does not write", NULL},
    {"join", "behind an atomic the kernel accesses what the atomic may write", NULL},
    {"lane", "the kernel reads its place in the warp", NULL},
    {"ledger", NULL, "20"},
    {"bins", NULL, "20"},
    {"narrow", NULL, NULL},
    {"raise", NULL, "60"},
    {"resize", "no argument tells the size of the grid along x", NULL},
    {"retry", NULL, "20"},
    {"select", "a load depends on a condition that its address does not tell", NULL},
    {"shl", "too few for a copy without them", NULL},
    {"sink", NULL, NULL},
    {"soa", "launches may pass one buffer for an argument that the kernel loads from", NULL},
    {"stageticket", "a load's address is more than arithmetic of places", NULL},
    {"stcs", "no load from an argument that the kernel does not write", NULL},
    {"step", NULL, NULL},
    {"ticket", NULL, NULL},
    {"twice", "no load from an argument that the kernel does not write", NULL},
    {"vary", NULL, "60"},
    {"wrap", NULL, NULL},
    {"more/asmwait", "no atomics can be joined: threads wait in a loop for what others do", NULL},
    {"more/ballot", "threads vote, and some of them end early", NULL},
    {"more/barwait", "no atomics can be joined: threads wait in a loop for what others do", NULL},
    {"more/cothreads", "the threads of a warp exchange values or wait", NULL},
    {"more/delin", NULL, NULL},
    {"more/exch",
     "no loop's turns can be spread: the loop's turns write to one place, to places that are not "
     "known to differ, or wait",
     NULL},
    {"more/idle", "a load depends on a condition that its address does not tell", NULL},
    {"more/ignore", "what runs under the condition loads from places that memory names", NULL},
    {"more/mma", "the kernel calls llvm.nvvm.wmma.m16n16k16.mma.row.col.f32.f32", NULL},
    {"more/narrowed", "\"at\" is no arithmetic in double precision", NULL},
    {"more/ownatomic", "some threads of a block end early", NULL},
    {"more/place", "the loop's counter may wrap around", NULL},
    {"more/predshfl",
     "the threads of a warp exchange values by a mask that is no constant, and some of them end "
     "early",
     NULL},
    {"more/relabel", "the threads of a warp exchange values or wait", NULL},
    {"more/relabelasm", "the kernel reads its place in the warp", NULL},
    {"more/stagebreak", "a load runs more or less often than once in a turn", NULL},
    {"more/stagediv", NULL, NULL},
    {"more/team3", "the first thread of a block may end early where others do not", NULL},
    {"more/teamread",
     "threads of a team read what its first one writes, and do not wait for each other between",
     NULL},
    {"more/turnstore",
     "no loop's turns can be spread: the loop's turns write to one place, to places that are not "
     "known to differ, or wait",
     NULL},
    {"more/varyarm", NULL, "5"},
    {"more/vote", "threads vote, and some of them end early", NULL},
    {"more/wait", "threads wait in a loop for what others do", NULL},
    {"more/warpsync", "the kernel calls llvm.nvvm.bar.warp.sync", NULL},
    {"more/when", NULL, NULL},
    {"read/blocksasm", "the kernel calls assembly", NULL},
    {"read/blockscall", "the kernel calls _Z10own_columnv", NULL},
    {"read/ceilneg", NULL, NULL},
    {"read/constlanes", NULL, NULL},
    {"read/deadfill", "some threads of a block end early", NULL},
    {"read/delincap", NULL, NULL},
    {"read/dyntwo", "a launch takes 4 * a * b bytes of dynamic shared memory already", NULL},
    {"read/exitasm", "a thread may end early: it calls assembly", NULL},
    {"read/gridname", "the grid cannot be computed from the kernel's arguments", NULL},
    {"read/idletwo", "a load depends on a condition that its address does not tell", NULL},
    {"read/longlanes", NULL, NULL},
    {"read/longstage", NULL, NULL},
    {"read/namedbar", "the effect of calling llvm.nvvm.barrier.sync.cnt is not known", NULL},
    {"read/namedlanes", "the kernel calls llvm.nvvm.barrier.sync.cnt", NULL},
    {"read/ownadd", "the kernel reads back what it wrote", NULL},
    {"read/ownstore", "some threads of a block end early", NULL},
    {"read/peelbyte", "too few for a copy without them", NULL},
    {"read/places", NULL, NULL},
    {"read/raisesel", "the loop's number of turns depends on a choice or on memory", NULL},
    {"read/range", "the first thread of a block may end early where others do not", NULL},
    {"read/readafter",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"read/resizecap", NULL, NULL},
    {"read/slotload", "places that are not known to differ", NULL},
    {"read/slotmin", "places that are not known to differ", NULL},
    {"read/slotstride", "places that are not known to differ", NULL},
    {"read/storeafter",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"read/structcopy", NULL, NULL},
    {"read/teamadd",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"read/threadscall", "the kernel calls _Z7of_warpf", NULL},
    {"read/twoloops",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"read/twostores", "places that are not known to differ", NULL},
    {"read/varykey", NULL, NULL},
    {"read/wraplanes", "the loop's counter may wrap around", NULL},
    {"read/wrapstep", NULL, NULL},
    {"idle/casdead", "threads without work have none", NULL},
    {"idle/deadchain", "threads without work have none", NULL},
    {"idle/hashdead", "threads without work have none", NULL},
    {"idle/idledown", "a load depends on a condition that its address does not tell", NULL},
    {"idle/loopstore", "writes a shared array in several places or in a loop", NULL},
    {"idle/maskshfl", "exchange values or wait by a mask that differs among members", NULL},
    {"idle/masksync", "exchange values by a mask that is no constant", NULL},
    {"idle/stagechain", "threads without work have none", NULL},
    {"idle/ticketload", "threads without work have none", NULL},
    {"idle/wmmadead", NULL, NULL},
    {"near/byvalcoarsen", "the kernel writes to a struct that is passed by value", NULL},
    {"near/byvalstage", "the kernel writes to a struct that is passed by value", NULL},
    {"near/byvalteam", "the kernel writes to a struct that is passed by value", NULL},
    {"near/copystage", "the address of a local array goes elsewhere", NULL},
    {"near/fillstage", "a thread may end early: it calls _Z4fillPii", NULL},
    {"near/selalloca", "the address of a local array goes elsewhere", NULL},
    {"near/selalloca2", "the address of a local array goes elsewhere", NULL},
    {"near/seljoin", "the address of a local array goes elsewhere", NULL},
    {"near/selshared", "the address of a shared array goes elsewhere", NULL},
    {"near/selstage", "the address of a local array goes elsewhere", NULL},
    {"unseen/aliketwo",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"unseen/armload",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"unseen/bigcopy", "the kernel copies from memory that it may write to", NULL},
    {"unseen/farblock", NULL, "5"},
    {"unseen/halfstore", NULL, NULL},
    {"unseen/joinexit2", "a thread may end early: it calls assembly", NULL},
    {"unseen/locktwo", "threads wait in a loop for what others do", NULL},
    {"unseen/longround", NULL, NULL},
    {"unseen/nobias", "the condition asks whether an argument is a certain number", NULL},
    {"unseen/placezero", NULL, NULL},
    {"unseen/predwrap", "the first thread of a block may end early where others do not", NULL},
    {"unseen/relabelco", NULL, NULL},
    {"unseen/resizewait", "threads wait in a loop for what others do", NULL},
    {"unseen/selptr", "places that are not known to differ", NULL},
    {"unseen/stageexit", "a thread may end early: it calls assembly", NULL},
    {"unseen/stagewait", "threads wait in a loop for what others do", NULL},
    {"unseen/teamatom", "threads of a team read what its first one writes", NULL},
    {"unseen/teamatomic", "threads of a team read what its first one writes", NULL},
    {"unseen/turnwait", "threads wait in a loop for what others do", NULL},
    {"unseen/twoparts", "places that are not known to differ", NULL},
    {"unseen/wmmastore", "no load from an argument that the kernel does not write", NULL},
    {"rare/again", "threads of a team read what its first one writes", NULL},
    {"rare/factor", "a turn of the loop uses a sum", NULL},
    {"rare/first", "threads of a team read what its first one writes", NULL},
    {"rare/improved", "the loop uses the test for the greatest or least value for more", NULL},
    {"rare/inclusive", "places that are not known to differ", NULL},
    {"rare/inverse", "under a condition of data, values of a shared or local array", NULL},
    {"rare/kick", "a loop around the spread one runs it again", NULL},
    {"rare/mean", "the loop's results are used under no condition", NULL},
    {"rare/missing",
     "the turns of a loop write what other threads of the team read or write elsewhere", NULL},
    {"rare/overlap", "a loop around the spread one runs it again", NULL},
    {"rare/window", "data decide whether a load of the loop runs", NULL},
    {"local/bits24", "no 2 adjacent accesses in its block", NULL},
    {"local/fermat", "is no arithmetic in double precision", NULL},
    {"local/halfsum", "is no PHI that a loop adds two or more terms to", NULL},
    {"local/maxthreads", "launches have blocks of several sizes", NULL},
    {"local/mmathread", NULL, NULL},
    {"local/stepalign", "is no pointer argument like", NULL},
    {"local/wholes", "is no arithmetic in double precision", NULL},
};

static ev_proc_result check(const struct attack *a, bool with_genome) {
    char task[400], genome[400];
    const char *words[12] = {"check", task, "--device", "vm:h200"};
    size_t count = 4;
    (void)snprintf(task, sizeof task, FOLDER "/%s/task.json", a->name);
    (void)snprintf(genome, sizeof genome, FOLDER "/%s/genome.json", a->name);
    if (with_genome) {
        words[count++] = "--genome";
        words[count++] = genome;
    }
    if (a->stress != NULL) {
        words[count++] = "--stress";
        words[count++] = a->stress;
    }
    return cli_run(words);
}

static void attacks_are_stopped(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        const struct attack *a = &attacks[i];
        ev_proc_result r = check(a, true);
        int ends = a->stress != NULL ? 1 : 0;
        print_message("%s\n", a->name);
        cli_expect(&r, a->refused != NULL ? 2 : ends);
        if (a->refused != NULL)
            assert_non_null(strstr(ev_str_text(&r.err), a->refused));
        ev_proc_result_free(&r);
    }
}

/* The unmodified starts of those that the stress finds stand it. */
static void starts_stand(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        if (attacks[i].stress == NULL)
            continue;
        ev_proc_result r = check(&attacks[i], false);
        print_message("%s\n", attacks[i].name);
        cli_expect(&r, 0);
        ev_proc_result_free(&r);
    }
}

/* Kernels that edits once refused: the bound of the loop is a field of a struct that is passed by
 * value; each turn computes how far the counter goes. And kernels that were refused as races: a
 * compare-and-swap that begins with a plain load, one value from all threads. And one that calls an
 * intrinsic of LLVM, one with launch bounds, which grow with the block, and one whose pointers
 * stand in a struct. And one where a block does the work of a thread, which has little to do in
 * small cases: it ran out of thread instructions there. */
static void edits_apply(void **state) {
    (void)state;
    static const struct {
        const char *kernel, *genome;
    } rows[] = {{"fields", "genome"}, {"stride", "ahead"}, {"stride", "turns"},
                {"idioms", "turns"},  {"async", "blocks"}, {"nest", "team"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char task[200], genome[200];
        (void)snprintf(task, sizeof task, APPLIED "/%s/task.json", rows[i].kernel);
        (void)snprintf(genome, sizeof genome, APPLIED "/%s/%s.json", rows[i].kernel,
                       rows[i].genome);
        ev_proc_result r = CLI_RUN("check", task, "--genome", genome, "--device", "vm:h200");
        cli_expect(&r, 0);
        ev_proc_result_free(&r);
    }
    ev_proc_result r = CLI_RUN("check", APPLIED "/nest/task.json", "--genome",
                               APPLIED "/nest/team.json", "--split", "search", "--stress", "20");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(attacks_are_stopped),
                                       cmocka_unit_test(starts_stand),
                                       cmocka_unit_test(edits_apply)};
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
