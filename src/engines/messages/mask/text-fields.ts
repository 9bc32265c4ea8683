/**
 * Which strings of a request or of a response are texts that guards read: every string, unless its name, its
 * object or its role says that it is something else. A field that is not listed here is read. The tables of the
 * kernel (assembly/texts/fields.ts) are made from these.
 */
import { isObject, type JsonObject } from '../json/json.ts'
import type { Place } from './places.ts'
import type { TextsMap } from './texts-map.ts'

/** Whose texts are read. */
export interface TextScope {
  /** True in messages of the assistant and in responses, whose reasoning is not read. */
  readonly isAssistant: boolean
  /** True in responses, whose citations `mapRepeatedTexts` maps. */
  readonly isResponse: boolean
  /** Rules of a format that the core does not know; omitted for the others. */
  readonly own?: OwnTexts
}

/**
 * How the value of a member is read:
 * - `setting`: nothing in it is a text.
 * - `reasoning`: nothing in it is a text if the assistant has written it.
 * - `label`: it is no text if it is a string.
 * - `data`: every string in it is a text, whatever its name is.
 * - `content`: it is the content of a message.
 * - a function maps the texts of the value. @throws LlmError 400 if they cannot be guarded
 */
export type MemberRule = 'setting' | 'reasoning' | 'label' | 'data' | 'content' | MapValue

type MapValue = (
  value: JsonObject,
  reading: { readonly map: TextsMap; readonly scope: TextScope; readonly place?: Place },
) => JsonObject

/** The texts of a format that the core does not know, in addition to the rules for all formats. */
interface OwnRules {
  /** Rules by the names of members, in any object. */
  readonly members: ReadonlyMap<string, MemberRule>
  /** The field with the messages, and the one with the prompt of the system. */
  readonly messages: string
  readonly system: readonly string[]
  /** Whether the text of a part is reasoning. */
  isReasoning(part: JsonObject): boolean
  /** Returns the text that a member has in base64, or `notText` if it is binary; undefined for other members. */
  encoded(holder: JsonObject, name: string): EncodedText | 'notText' | undefined
}

export interface OwnTexts extends OwnRules {
  readonly scopes: Readonly<Record<'request' | 'assistant' | 'response', TextScope>>
}

/** A text that a string contains in base64, behind a prefix. */
export interface EncodedText {
  readonly prefix: string
  readonly data: string
  /** True if the data is not in base64, but has its bytes as they are or as `%XX`. */
  readonly isPlain?: boolean
}

export function defineOwnTexts(rules: OwnRules): OwnTexts {
  const own = { ...rules } as { -readonly [Name in keyof OwnTexts]: OwnTexts[Name] }
  own.scopes = {
    request: { ...requestScope, own },
    assistant: { ...assistantScope, own },
    response: { ...responseScope, own },
  }
  return own
}

export const requestScope: TextScope = { isAssistant: false, isResponse: false }
export const assistantScope: TextScope = { isAssistant: true, isResponse: false }
export const responseScope: TextScope = { isAssistant: true, isResponse: true }
const plainScopes = { request: requestScope, assistant: assistantScope, response: responseScope }

export const requestScopeOf = (own: OwnTexts | undefined): TextScope =>
  own?.scopes.request ?? requestScope
export const responseScopeOf = (own: OwnTexts | undefined): TextScope =>
  own?.scopes.response ?? responseScope

/** Returns the scope of a message or item: a reasoning item has no role, and is written by the assistant. */
export function scopeOf(message: JsonObject, scope: TextScope): TextScope {
  if (scope.isResponse) return scope
  const { role, type } = message
  const { assistant, request } = scope.own?.scopes ?? plainScopes
  if (role === 'assistant' || (role === 'model' && scope.own !== undefined)) return assistant
  return role === undefined && type === 'reasoning' ? assistant : request
}

/** Fields with contents: a text, parts, or one part. */
export const contentFields: ReadonlySet<string> = new Set(
  'content output outputs results system instructions'.split(' '),
)

/** Top-level settings of requests, which responses may repeat. */
export const settings = new Set(
  [
    'model stream stream_options tools tool_choice functions function_call response_format text stop',
    'stop_sequences user safety_identifier prompt_cache_key prompt_cache_retention metadata service_tier',
    'store modalities audio reasoning reasoning_effort thinking verbosity output_config output_format',
    'web_search_options include truncation previous_response_id conversation container mcp_servers speed',
    'inference_geo cache_control logit_bias encoding_format safetySettings cachedContent labels',
    'anthropic_version anthropic_beta task_type input_type truncate',
  ].flatMap((line) => line.split(' ')),
)

/** Whether a member is a setting. `text` is one unless it is a string, as in some requests for embeddings. */
export const isSetting = (name: string, value: unknown): boolean =>
  settings.has(name) && !(name === 'text' && typeof value === 'string')

export const ruleOf = ({ own }: TextScope, name: string): MemberRule | undefined =>
  own?.members.get(name)

/** Names of strings that are no text, in any object. */
export const labels = new Set(
  [
    'type role name id ids object status phase model format detail media_type mime_type content_type',
    'signature b64_json partial_image_b64 namespace server_label version finish_reason',
    'native_finish_reason stop_reason service_tier system_fingerprint provider obfuscation url uri',
  ].flatMap((line) => line.split(' ')),
)
const labelPattern = /^encrypted_|_(?:ids?|ur[il]|at|signature)$/
const urlPattern = /^(?:.*_)?ur[il]$/

/** Returns true if a string of this name is an id, a type, a role, a name, a URL or encrypted. */
export function isLabel(holder: JsonObject, name: string, { own }: TextScope): boolean {
  if (own?.members.get(name) === 'label') return true
  // Translations write these URLs into a text.
  if (name === 'url' && holder.type === 'web_search_result') return false
  return labels.has(name) || labelPattern.test(name)
}

export const isUrlName = (name: string): boolean => urlPattern.test(name)

/** Types of parts whose text is reasoning. */
const reasoningTypes = new Set<unknown>(['reasoning_text', 'summary_text'])
/** Fields whose content is reasoning. */
export const reasoningFields = new Set(
  'thinking reasoning reasoning_content reasoning_details thinking_blocks'.split(' '),
)
/** Arguments of tool calls, schemas of tools, and settings of parts. */
export const argumentFields = new Set(
  'arguments partial_json parameters input_schema schema json_schema cache_control'.split(' '),
)
/** Details of responses that are not texts of the model. */
export const responseDetails = new Set(
  [
    'usage incomplete_details content_filter_results content_filter_result prompt_filter_results',
    'safety_ratings billing',
  ].flatMap((line) => line.split(' ')),
)
export const clientCall = new Set(['action', 'actions', 'operation', 'environment'])
export const imageCall = new Set([
  'result',
  'size',
  'quality',
  'background',
  'output_format',
  'action',
])
/** Fields that are no text in objects of a type: arguments of calls that the client runs, and images. */
const fieldsOfType = new Map<unknown, ReadonlySet<string>>([
  ['computer_call', clientCall],
  ['shell_call', clientCall],
  ['local_shell_call', clientCall],
  ['apply_patch_call', clientCall],
  ['image_generation_call', imageCall],
])
/** Types of objects whose `input` has the arguments of a call. Searches and code that the vendor runs are read. */
const callType = /^(?!server_tool_use$).*(?:tool_use|_call)$/s

const isCallType = (type: unknown): boolean => typeof type === 'string' && callType.test(type)

/** Fields whose texts quote or name sources. Vendor B puts citations into `context`. */
export const citationFields: ReadonlySet<string> = new Set(
  'annotation annotations citation citations context search_results'.split(' '),
)

/**
 * Returns true if nothing below a field is a text that guards read here. `key` is the name of the field that
 * contains `holder`.
 */
export function isSkipped(
  holder: JsonObject,
  key: string | undefined,
  name: string,
  { isAssistant, isResponse, own }: TextScope,
): boolean {
  if (argumentFields.has(name)) return true
  const rule = own?.members.get(name)
  if (rule === 'setting' || (isAssistant && rule === 'reasoning')) return true
  if (isAssistant && isReasoning(holder, name, own)) return true
  if (isResponse && responseDetails.has(name)) return true
  // A `context` that is a string belongs to a document.
  if (isResponse && citationFields.has(name)) return typeof holder[name] !== 'string'
  if (name === 'input') return key === 'custom' || isCallType(holder.type)
  if (name === 'data') return key === 'input_audio' || key === 'audio'
  return fieldsOfType.get(holder.type)?.has(name) === true
}

function isReasoning(holder: JsonObject, name: string, own: OwnTexts | undefined): boolean {
  if (name === 'text') return isReasoningPart(holder, own)
  if (name === 'data') return holder.type === 'redacted_thinking'
  return reasoningFields.has(name)
}

const isReasoningPart = (part: JsonObject, own: OwnTexts | undefined): boolean =>
  reasoningTypes.has(part.type) || own?.isReasoning(part) === true

type TextField = 'text' | 'refusal' | 'transcript'

/** Returns the name of the field with the text of a part; undefined if the part has no text. */
export function textField(part: unknown, { isAssistant, own }: TextScope): TextField | undefined {
  if (!isObject(part)) return undefined
  if (typeof part.text === 'string' && !(isAssistant && isReasoningPart(part, own))) {
    return 'text'
  }
  if (typeof part.refusal === 'string') return 'refusal'
  return typeof part.transcript === 'string' ? 'transcript' : undefined
}

/** Returns the text of a part, for guards and for translations; undefined if the part has no text. */
export function textOfPart(part: unknown, scope: TextScope): string | undefined {
  if (typeof part === 'string') return part
  const name = textField(part, scope)
  return isObject(part) && name !== undefined ? String(part[name]) : undefined
}

/** Returns the part with another text; the same object if the text is the same. */
export function putText(part: unknown, text: string, scope: TextScope): unknown {
  if (typeof part === 'string') return text
  const name = textField(part, scope)
  return isObject(part) && name !== undefined && part[name] !== text
    ? { ...part, [name]: text }
    : part
}
