/* Turns: kernels of several streams side by side. Each has a thread of its own, and only the one
 * whose turn it is runs in the virtual machine; where a stretch of its instructions ends, it is the
 * next one's turn. So each instruction, an atomic one too, is whole for the others, and who polls a
 * flag lets go whoever sets it. */
#include "fitness/device/standin/standin.h"

/* The ring of those that run, and whose turn it is. */
static struct {
    pthread_mutex_t lock;
    sd_turn *holder;          /* NULL: nobody runs */
    const sd_context *hidden; /* for whom buffers are hidden in the machine; NULL: none are */
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Memory of other devices is there only for contexts that enabled their peer. */
static void hide_peers(const sd_context *c, bool hidden) {
    sd_state *s = sd_get();
    for (size_t i = 0; s->device_count > 1 && i < s->buffer_count; i++) {
        const sd_buffer *b = &s->buffers[i];
        if (b->where == SD_ON_DEVICE && b->device != c->device && !(c->peers >> b->device & 1))
            (void)vm_memory_hide(s->memory, b->address, hidden);
    }
}

static void hide_for(const sd_context *c) {
    if (turns.hidden == c)
        return;
    if (turns.hidden != NULL)
        hide_peers(turns.hidden, false);
    if (c != NULL)
        hide_peers(c, true);
    turns.hidden = c;
}

/* Until it is its turn; for ever, once it is abandoned. The lock is held. */
static void await(sd_turn *t) {
    while (turns.holder != t || t->abandoned)
        (void)pthread_cond_wait(&t->mine, &turns.lock);
    hide_for(t->context);
}

static void pass_on(sd_turn *next) {
    turns.holder = next;
    if (next != NULL)
        (void)pthread_cond_signal(&next->mine);
}

static void leave_ring(sd_turn *t) {
    t->before->next = t->next;
    t->next->before = t->before;
}

void sd_turn_begin(sd_turn *t) {
    (void)pthread_mutex_lock(&turns.lock);
    while (t->abandoned)
        (void)pthread_cond_wait(&t->mine, &turns.lock);
    if (turns.holder == NULL) {
        t->next = t->before = turns.holder = t;
    } else {
        t->next = turns.holder;
        t->before = turns.holder->before;
        t->before->next = t->next->before = t;
    }
    t->in_ring = true;
    await(t);
    (void)pthread_mutex_unlock(&turns.lock);
}

void sd_turn_pass(sd_turn *t) {
    (void)pthread_mutex_lock(&turns.lock);
    if (t->next != t) {
        pass_on(t->next);
        await(t);
    }
    (void)pthread_mutex_unlock(&turns.lock);
}

void sd_turn_end(sd_turn *t) {
    (void)pthread_mutex_lock(&turns.lock);
    hide_for(NULL);
    leave_ring(t);
    t->in_ring = false;
    pass_on(t->next != t ? t->next : NULL);
    (void)pthread_mutex_unlock(&turns.lock);
}

/* Its thread waits for ever, and what it holds is never given back: a machine cannot be stopped
 * between two instructions, and the context is lost anyway. */
void sd_turn_abandon(sd_turn *t) {
    (void)pthread_mutex_lock(&turns.lock);
    t->abandoned = true;
    if (t->in_ring)
        leave_ring(t);
    t->in_ring = false;
    (void)pthread_mutex_unlock(&turns.lock);
}
