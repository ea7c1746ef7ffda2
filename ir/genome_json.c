/* Genomes and edits as JSON, with a strict reader that refuses unknown keys. */
#include "base/expr.h"
#include "base/json.h"
#include "base/str.h"
#include "ir/edit.h"
#include "ir/genome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ----------------------------------------------------------------------------------
 */

void ir_name_print(const ir_name *name, char text[IR_NAME_TEXT]) {
    switch (name->kind) {
    case IR_NAME_BASE:
        snprintf(text, IR_NAME_TEXT, "i%" PRIu32, name->number);
        break;
    case IR_NAME_ADDED:
        snprintf(text, IR_NAME_TEXT, "t%016" PRIx64 ".%" PRIu32, name->tag, name->number);
        break;
    case IR_NAME_SELF:
        snprintf(text, IR_NAME_TEXT, "self.%" PRIu32, name->number);
        break;
    case IR_NAME_NONE:
        text[0] = '\0';
        break;
    }
}

static json_t *name_json(const ir_name *name) {
    char text[IR_NAME_TEXT];
    ir_name_print(name, text);
    return json_string(text);
}

static json_t *value_json(const ir_value *value) {
    switch (value->kind) {
    case IR_VALUE_INSN:
        return name_json(&value->insn);
    case IR_VALUE_ARG:
        return json_sprintf("a%u", (unsigned)value->arg);
    case IR_VALUE_INT:
        return json_integer((json_int_t)value->integer);
    case IR_VALUE_REAL:
        return json_real(value->real);
    case IR_VALUE_NONE:
        break;
    }
    return NULL;
}

static json_t *repairs_json(const ir_edit *edit) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < edit->repair_count; i++) {
        const ir_repair *repair = &edit->repairs[i];
        json_t *row = json_array();
        ok = row && json_array_append_new(row, name_json(&repair->use.user)) == 0 &&
             json_array_append_new(row, json_integer(repair->use.operand)) == 0 &&
             json_array_append_new(row, value_json(&repair->value)) == 0;
        ok = json_array_append_new(list, row) == 0 && ok;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *use_json(const ir_use *use) {
    json_t *row = json_array();
    if (row && json_array_append_new(row, name_json(&use->user)) == 0 &&
        json_array_append_new(row, json_integer(use->operand)) == 0)
        return row;
    json_decref(row);
    return NULL;
}

static const char axes[] = "xyz";

void ir_anchor_print(const ir_anchor *anchor, char text[IR_ANCHOR_TEXT]) {
    text[0] = '\0';
    if (anchor->kind == IR_ANCHOR_DIMENSION)
        snprintf(text, IR_ANCHOR_TEXT, "%c", axes[anchor->number]);
    else if (anchor->kind == IR_ANCHOR_LOOP)
        snprintf(text, IR_ANCHOR_TEXT, "loop %s", anchor->path);
    else if (anchor->kind == IR_ANCHOR_ARGUMENT)
        snprintf(text, IR_ANCHOR_TEXT, "a%u", anchor->number);
    else if (anchor->kind == IR_ANCHOR_SHARED)
        snprintf(text, IR_ANCHOR_TEXT, "s%u", anchor->number);
    else if (anchor->kind == IR_ANCHOR_DIVISOR)
        snprintf(text, IR_ANCHOR_TEXT, "%c by %s", axes[anchor->number], anchor->path);
}

static json_t *anchor_json(const ir_anchor *anchor) {
    char text[IR_ANCHOR_TEXT];
    ir_anchor_print(anchor, text);
    return json_string(text);
}

static const char *const form_names[] = {"",        "strided",  "neighbours", "far",      "padded",
                                         "equal",   "multiple", "kept",       "interior", "guarded",
                                         "members", "balanced", "nested"};
_Static_assert(sizeof form_names / sizeof form_names[0] == IR_FORM_COUNT, "one name a form");

const char *ir_form_name(ir_form form) {
    return form_names[form];
}

json_t *ir_edit_to_json(const ir_edit *edit) {
    json_t *json = json_object();
    if (!json)
        return NULL;
    bool ok = json_object_set_new(json, "kind", json_string(ir_edit_name(edit->kind))) == 0;
    if (edit->at.kind != IR_NAME_NONE)
        ok = json_object_set_new(json, "at", name_json(&edit->at)) == 0 && ok;
    if (edit->to.kind != IR_NAME_NONE)
        ok = json_object_set_new(json, "to", name_json(&edit->to)) == 0 && ok;
    if (edit->has_operand)
        ok = json_object_set_new(json, "operand", json_integer(edit->operand)) == 0 && ok;
    if (edit->has_option)
        ok = json_object_set_new(json, "option", json_integer((json_int_t)edit->option)) == 0 && ok;
    if (edit->use.user.kind != IR_NAME_NONE)
        ok = json_object_set_new(json, "use", use_json(&edit->use)) == 0 && ok;
    if (edit->value.kind != IR_VALUE_NONE)
        ok = json_object_set_new(json, "value", value_json(&edit->value)) == 0 && ok;
    if (edit->anchor.kind != IR_ANCHOR_NONE)
        ok = json_object_set_new(json, "anchor", anchor_json(&edit->anchor)) == 0 && ok;
    if (edit->form != IR_FORM_NONE)
        ok = json_object_set_new(json, "form", json_string(ir_form_name(edit->form))) == 0 && ok;
    if (edit->repair_count > 0)
        ok = json_object_set_new(json, "repairs", repairs_json(edit)) == 0 && ok;
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

static const char OPTIMISED[] = "optimised";

json_t *ir_genome_to_json(const ir_genome *genome) {
    json_t *json = json_object();
    json_t *macros = json_object();
    json_t *edits = json_array();
    bool ok = json && macros && edits;
    for (size_t i = 0; ok && i < ir_genome_macro_count(genome); i++)
        ok = json_object_set_new(macros, ir_genome_macro_name(genome, i),
                                 json_integer((json_int_t)ir_genome_macro_value(genome, i))) == 0;
    for (size_t i = 0; ok && i < ir_genome_edit_count(genome); i++)
        ok = json_array_append_new(edits, ir_edit_to_json(ir_genome_edit(genome, i))) == 0;
    ok = ok && json_object_set_new(json, "start", json_string(ir_genome_start(genome))) == 0 &&
         json_object_set(json, "macros", macros) == 0 && json_object_set(json, "edits", edits) == 0;
    if (ir_genome_is_optimised(genome)) /* left out if false, so that older genomes keep their
                                           hash */
        ok = ok && json_object_set_new(json, "base", json_string(OPTIMISED)) == 0;
    json_decref(macros);
    json_decref(edits);
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

/* Reads a number: decimal digits only, below 2^32. */
static bool read_number(const char *text, uint32_t *out) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0' || (digits > 1 && text[0] == '0'))
        return false;
    unsigned long long number = strtoull(text, NULL, 10);
    *out = (uint32_t)number;
    return number < UINT32_MAX;
}

static bool read_name(const char *text, ir_name *out) {
    *out = (ir_name){0};
    if (text[0] == 'i' && read_number(text + 1, &out->number)) {
        out->kind = IR_NAME_BASE;
    } else if (strncmp(text, "self.", 5) == 0 && read_number(text + 5, &out->number)) {
        out->kind = IR_NAME_SELF;
    } else if (text[0] == 't' && strspn(text + 1, "0123456789abcdef") == 16 && text[17] == '.' &&
               read_number(text + 18, &out->number)) {
        out->kind = IR_NAME_ADDED;
        out->tag = strtoull(text + 1, NULL, 16);
    }
    return out->kind != IR_NAME_NONE;
}

static bool read_json_name(const json_t *json, ir_name *out) {
    return json_is_string(json) && read_name(json_string_value(json), out);
}

static bool read_json_operand(const json_t *json, uint32_t *out) {
    json_int_t value = json_integer_value(json);
    *out = (uint32_t)value;
    return json_is_integer(json) && value >= 0 && value < UINT32_MAX;
}

static bool read_json_value(const json_t *json, ir_value *out) {
    *out = (ir_value){0};
    if (json_is_integer(json)) {
        out->kind = IR_VALUE_INT;
        out->integer = json_integer_value(json);
    } else if (json_is_real(json)) {
        out->kind = IR_VALUE_REAL;
        out->real = json_real_value(json);
    } else if (read_json_name(json, &out->insn)) {
        out->kind = IR_VALUE_INSN;
    } else if (json_is_string(json) && json_string_value(json)[0] == 'a' &&
               read_number(json_string_value(json) + 1, &out->arg)) {
        out->kind = IR_VALUE_ARG;
    }
    return out->kind != IR_VALUE_NONE;
}

/* Digits with single dots between them. */
static bool is_loop_path(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length < IR_ANCHOR_PATH && strspn(text, "0123456789.") == length &&
           text[0] != '.' && text[length - 1] != '.' && !strstr(text, "..");
}

/* "x by width", "x by (width + 1) / 2": an axis, and an expression of the launch plan. */
static bool read_divisor(const char *text, ir_anchor *out) {
    static const char by[] = " by ";
    const char *axis = text[0] ? strchr(axes, text[0]) : NULL;
    bool is_constant = false;
    ev_error ignored;
    if (!axis || strncmp(text + 1, by, sizeof by - 1) != 0)
        return false;
    const char *divisor = text + sizeof by;
    size_t length = strlen(divisor);
    if (length >= IR_ANCHOR_PATH || expr_check(divisor, NULL, &is_constant, &ignored) != EV_OK)
        return false;
    *out = (ir_anchor){.kind = IR_ANCHOR_DIVISOR, .number = (uint32_t)(axis - axes)};
    memcpy(out->path, divisor, length + 1);
    return true;
}

static bool read_anchor(const char *text, ir_anchor *out) {
    static const char loop[] = "loop ";
    const char *axis = text && text[0] && !text[1] ? strchr(axes, text[0]) : NULL;
    *out = (ir_anchor){0};
    if (axis) {
        *out = (ir_anchor){.kind = IR_ANCHOR_DIMENSION, .number = (uint32_t)(axis - axes)};
    } else if (text && strncmp(text, loop, sizeof loop - 1) == 0 &&
               is_loop_path(text + sizeof loop - 1)) {
        out->kind = IR_ANCHOR_LOOP;
        snprintf(out->path, sizeof out->path, "%s", text + sizeof loop - 1);
    } else if (text && read_divisor(text, out)) {
        return true;
    } else if (text && text[0] == 'a' && read_number(text + 1, &out->number)) {
        out->kind = IR_ANCHOR_ARGUMENT;
    } else if (text && text[0] == 's' && read_number(text + 1, &out->number)) {
        out->kind = IR_ANCHOR_SHARED;
    }
    return out->kind != IR_ANCHOR_NONE;
}

static bool read_form(const char *text, ir_form *out) {
    for (int form = IR_FORM_NONE + 1; text && form < IR_FORM_COUNT; form++) {
        if (strcmp(text, form_names[form]) == 0) {
            *out = (ir_form)form;
            return true;
        }
    }
    return false;
}

static bool read_json_use(const json_t *json, ir_use *out) {
    return json_is_array(json) && json_array_size(json) == 2 &&
           read_json_name(json_array_get(json, 0), &out->user) &&
           read_json_operand(json_array_get(json, 1), &out->operand);
}

static bool read_repair(const json_t *json, ir_repair *out) {
    return json_is_array(json) && json_array_size(json) == 3 &&
           read_json_name(json_array_get(json, 0), &out->use.user) &&
           read_json_operand(json_array_get(json, 1), &out->use.operand) &&
           read_json_value(json_array_get(json, 2), &out->value);
}

static ev_status read_repairs(const json_t *json, ir_edit *edit, ev_error *err) {
    if (!json_is_array(json))
        return ev_fail(err, EV_BAD, "\"repairs\" is no list of [user, operand, value]");
    size_t index;
    const json_t *row;
    json_array_foreach(json, index, row) {
        ir_repair repair = {0};
        if (!read_repair(row, &repair))
            return ev_fail(err, EV_BAD,
                           "repairs[%zu] is not like [\"i12\", 0, \"i3\"] (user, operand, value)",
                           index);
        if (!ir_edit_add_repair(edit, repair))
            return ev_fail_memory(err, sizeof repair);
    }
    return EV_OK;
}

static ev_status read_kind(const json_t *json, ir_edit *edit, ev_error *err) {
    const char *name = json_string_value(json);
    if (!name)
        return ev_fail(err, EV_BAD, "\"kind\" is no string");
    if (ir_edit_find(name, &edit->kind))
        return EV_OK;
    ev_str known = EV_STR_EMPTY;
    for (int kind = 0; kind < IR_EDIT_COUNT; kind++)
        ev_str_printf(&known, "%s%s", kind ? ", " : "", ir_edit_name((ir_edit_kind)kind));
    ev_status status =
        ev_fail(err, EV_BAD, "unknown edit \"%s\"; known: %s", name, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

/* Reads one key of an edit's object. */
static ev_status read_edit_key(const char *key, const json_t *value, ir_edit *edit, ev_error *err) {
    bool fine = true;
    if (strcmp(key, "kind") == 0)
        return read_kind(value, edit, err);
    if (strcmp(key, "repairs") == 0)
        return read_repairs(value, edit, err);
    if (strcmp(key, "at") == 0) {
        fine = read_json_name(value, &edit->at);
    } else if (strcmp(key, "to") == 0) {
        fine = read_json_name(value, &edit->to);
    } else if (strcmp(key, "operand") == 0) {
        fine = edit->has_operand = read_json_operand(value, &edit->operand);
    } else if (strcmp(key, "option") == 0) {
        fine = edit->has_option = json_is_integer(value);
        edit->option = json_integer_value(value);
    } else if (strcmp(key, "use") == 0) {
        fine = read_json_use(value, &edit->use);
    } else if (strcmp(key, "value") == 0) {
        fine = read_json_value(value, &edit->value);
    } else if (strcmp(key, "anchor") == 0) {
        fine = read_anchor(json_string_value(value), &edit->anchor);
    } else if (strcmp(key, "form") == 0) {
        fine = read_form(json_string_value(value), &edit->form);
    } else {
        return ev_fail(err, EV_BAD,
                       "unknown key \"%s\"; known: anchor, at, form, kind, operand, option, "
                       "repairs, to, use, value",
                       key);
    }
    return fine ? EV_OK
                : ev_fail(err, EV_BAD,
                          "\"%s\" has an impossible value (instructions are like \"i12\", "
                          "arguments like \"a3\", operands whole numbers, anchors like \"x\" or "
                          "\"loop 0.1\", forms like \"strided\")",
                          key);
}

ev_status ir_edit_from_json(const json_t *json, ir_edit *out, ev_error *err) {
    if (!json_is_object(json))
        return ev_fail(err, EV_BAD, "not an object");
    if (!json_object_get(json, "kind"))
        return ev_fail(err, EV_BAD, "the key \"kind\" is missing");
    ir_edit edit = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value) {
        ev_status status = read_edit_key(key, value, &edit, err);
        if (status != EV_OK) {
            ir_edit_clear(&edit);
            return status;
        }
    }
    if (!ir_edit_seal(&edit)) {
        ir_edit_clear(&edit);
        return ev_fail_memory(err, sizeof edit);
    }
    *out = edit;
    return EV_OK;
}

static ev_status read_macros(const json_t *json, ir_genome *genome, ev_error *err) {
    if (!json_is_object(json))
        return ev_fail(err, EV_BAD, "genome: \"macros\" is no object of names and integers");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)json, name, value) {
        if (!json_is_integer(value))
            return ev_fail(err, EV_BAD, "genome: macros.%s is no integer", name);
        EV_TRY(ir_genome_set_macro(genome, name, json_integer_value(value), err));
    }
    return EV_OK;
}

/* Whether two edits are the same, or set the same knob. */
static bool stands_already(const ir_genome *genome, const ir_edit *edit) {
    for (size_t i = 0; ir_edit_is_knob(edit->kind) && i < ir_genome_edit_count(genome); i++) {
        if (ir_genome_edit_kind(genome, i) == edit->kind)
            return true;
    }
    return ir_genome_holds(genome, &edit->key);
}

static ev_status read_edits(const json_t *json, ir_genome *genome, ev_error *err) {
    if (!json_is_array(json))
        return ev_fail(err, EV_BAD, "genome: \"edits\" is no list");
    size_t index;
    const json_t *row;
    json_array_foreach(json, index, row) {
        ir_edit edit;
        ev_status status = ir_edit_from_json(row, &edit, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "genome: edits[%zu]", index);
        if (stands_already(genome, &edit)) {
            ir_edit_clear(&edit);
            return ev_fail(err, EV_BAD, "genome: edits[%zu]: \"%s\" is given twice; keep one",
                           index, ir_edit_name(edit.kind));
        }
        if (ir_edit_is_structural(edit.kind) &&
            ir_genome_edit_count(genome) > ir_genome_prefix_count(genome)) {
            ir_edit_clear(&edit);
            return ev_fail(err, EV_BAD,
                           "genome: edits[%zu]: \"%s\" is structural and stands behind a local "
                           "edit; structural edits come first",
                           index, ir_edit_name(edit.kind));
        }
        if (!ir_genome_append(genome, edit))
            return ev_fail_memory(err, sizeof edit);
    }
    return EV_OK;
}

static ev_status check_keys(const json_t *json, ev_error *err) {
    if (!json_is_object(json))
        return ev_fail(err, EV_BAD, "genome: not an object");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value) {
        if (strcmp(key, "start") != 0 && strcmp(key, "macros") != 0 && strcmp(key, "edits") != 0 &&
            strcmp(key, "base") != 0)
            return ev_fail(err, EV_BAD,
                           "genome: unknown key \"%s\"; known: base, edits, macros, start", key);
    }
    const json_t *base = json_object_get(json, "base");
    if (base && (!json_is_string(base) || strcmp(json_string_value(base), OPTIMISED) != 0))
        return ev_fail(err, EV_BAD, "genome: \"base\" is not \"%s\"; leave it out for the other",
                       OPTIMISED);
    if (!json_is_string(json_object_get(json, "start")))
        return ev_fail(err, EV_BAD, "genome: \"start\" is missing or no string");
    return EV_OK;
}

ev_status ir_genome_from_json(const json_t *json, ir_genome **out, ev_error *err) {
    EV_TRY(check_keys(json, err));
    ir_genome *genome = ir_genome_new(json_string_value(json_object_get(json, "start")));
    if (!genome)
        return ev_fail_memory(err, 1);
    ir_genome_set_optimised(genome, json_object_get(json, "base") != NULL);
    const json_t *macros = json_object_get(json, "macros");
    const json_t *edits = json_object_get(json, "edits");
    ev_status status = macros ? read_macros(macros, genome, err) : EV_OK;
    if (status == EV_OK && edits)
        status = read_edits(edits, genome, err);
    if (status != EV_OK) {
        ir_genome_free(genome);
        return status;
    }
    *out = genome;
    return EV_OK;
}
