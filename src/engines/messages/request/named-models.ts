/**
 * Finds the models that a request names besides its member `model`: those that vendors and routers fall back to, and
 * those of tools. Settings are read at any depth, because a name of a member says that its value is a model.
 */

import { isObject, type JsonObject } from '../json/json.ts'
import { asciiName } from '../json/names.ts'

/** A model that a member of a request names. */
interface NamedModel {
  readonly path: string
  /** Undefined if the value is no name, so that the model is not known. */
  readonly model: string | undefined
}

/**
 * Names of members whose strings are models: `model` of fallbacks, tools, plugins and moderation; lists such as
 * `models`, `fallbacks`, `fallback_models` and `context_window_fallbacks`; `embedding_model`, `draft_model` and
 * `safety_model`; deployments of vendorB's data sources; stored settings that choose a model.
 */
const naming =
  /^(?:.*_)?(?:models?|fallbacks?|model_?(?:id|name)|deployment_?(?:id|name)?)$|^preset$/

/** Members with texts, schemas and data of the client, which name no model. */
const unread: ReadonlySet<string> = new Set(
  [
    'metadata labels user input_schema inputschema schema json_schema parametersjsonschema logit_bias',
    'arguments response_format stop stop_sequences',
  ].flatMap((line) => line.split(' ')),
)
/** Members with tools of the client, whose `parameters` are schemas; those of other tools are settings. */
const functionMembers = /^(?:functions?|functiondeclarations)$/
/** Members with the conversation, in which only tools are settings. */
const conversation: ReadonlySet<string> = new Set(
  'messages input system instructions prompt contents systeminstruction system_instruction'.split(
    ' ',
  ),
)
const toolMembers: ReadonlySet<string> = new Set(['tools', 'tool'])

/** Maximum depth of members; what is deeper counts as a model that is not known. */
const maxDepth = 16

/** Returns the models that a request names besides its own. */
export function namedModels(body: JsonObject): readonly NamedModel[] {
  const found: NamedModel[] = []
  for (const [name, value] of Object.entries(body)) {
    const plain = asciiName(name)
    if (plain === 'model') continue
    if (conversation.has(plain)) addTools(value, name, found, 0)
    else addMember(name, value, { path: '', isFunction: false }, found, 0)
  }
  return found
}

/** Adds the models of tools that items of the conversation bring. */
function addTools(value: unknown, path: string, found: NamedModel[], depth: number): void {
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) addTools(item, `${path}[${at}]`, found, depth)
  } else if (isObject(value) && depth < maxDepth) {
    for (const [name, inner] of Object.entries(value)) {
      const plain = asciiName(name)
      if (toolMembers.has(plain)) addMember(name, inner, { path, isFunction: false }, found, 0)
      else if (plain === 'content') addTools(inner, `${path}.${name}`, found, depth + 1)
    }
  }
}

/** The object that has a member. */
interface Holder {
  readonly path: string
  /** Whether it is a tool that the client runs. */
  readonly isFunction: boolean
}

function addMember(
  name: string,
  value: unknown,
  { path: holder, isFunction }: Holder,
  found: NamedModel[],
  depth: number,
): void {
  const plain = asciiName(name)
  if (unread.has(plain) || (isFunction && plain === 'parameters')) return
  const path = holder === '' ? name : `${holder}.${name}`
  if (naming.test(plain)) addNamed(value, path, found, depth)
  else addInner(value, { path, isFunction: functionMembers.test(plain) }, found, depth)
}

/** Adds the models in the value of a member that names some. */
function addNamed(value: unknown, path: string, found: NamedModel[], depth: number): void {
  if (value === null || typeof value === 'boolean') return
  if (typeof value === 'string') found.push({ path, model: value })
  else if (Array.isArray(value) && depth < maxDepth) {
    for (const [at, item] of value.entries()) addNamed(item, `${path}[${at}]`, found, depth + 1)
  } else if (isObject(value) && depth < maxDepth) addNamedObject(value, path, found, depth + 1)
  else found.push({ path, model: undefined })
}

/**
 * Finds the models in an object. If a member names a model, the other members are settings; otherwise each member
 * is an entry with models of its own.
 */
function addNamedObject(value: JsonObject, path: string, found: NamedModel[], depth: number): void {
  const entries = Object.entries(value)
  if (entries.some(([name]) => naming.test(asciiName(name)))) {
    addInner(value, { path, isFunction: false }, found, depth)
    return
  }
  for (const [name, inner] of entries) addNamed(inner, `${path}.${name}`, found, depth)
}

/** Adds the models in the members of an object, or of those in a list. `at` is the place of the value. */
function addInner(value: unknown, at: Holder, found: NamedModel[], depth: number): void {
  if (typeof value !== 'object' || value === null) return
  const { path, isFunction } = at
  if (depth >= maxDepth) found.push({ path, model: undefined })
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      addInner(item, { path: `${path}[${index}]`, isFunction }, found, depth + 1)
    }
  } else if (isObject(value)) {
    const holder = { path, isFunction: isFunction || value.type === 'function' }
    for (const [name, inner] of Object.entries(value)) {
      addMember(name, inner, holder, found, depth + 1)
    }
  }
}
