/**
 * The places of texts in messages. A guard with a `scope` reads only the places that it names. A member that is not
 * listed here is at the place of what contains it. The `places` of each format list its members for the documentation.
 */
import type { JsonObject } from '../json/json.ts'

/** Rules of a format about its parts. */
interface PartRules {
  isReasoning(part: JsonObject): boolean
}

/** Places in requests to models and in their responses. */
export const modelPlaces = [
  'SystemPrompt',
  'Messages',
  'ToolDefinition',
  'ToolInput',
  'ToolOutput',
  'Reasoning',
  'Documents',
  'FileNames',
] as const
export type Place = (typeof modelPlaces)[number]
export type Places = ReadonlySet<Place>

/**
 * Members of a format with texts, by their place. `name[a=b]` is a list of objects with the member `a`, and `name{a=b}`
 * an object.
 */
export interface FormatPlaces {
  readonly request: PathsAt
  readonly response: PathsAt
}
type PathsAt = Readonly<Partial<Record<Place, readonly string[]>>>

/** Places in responses of models. */
export const responsePlaces: Places = new Set<Place>([
  ...(['Messages', 'ToolInput', 'ToolOutput', 'Reasoning', 'Documents', 'FileNames'] as const),
])
/** Opt-in places: they have texts that guards read only if their scope names the place. */
export const optInPlaces: Places = new Set<Place>(['ToolDefinition', 'ToolInput', 'Reasoning'])

/** Places that contain no other place: a document in the result of a tool is part of the result. */
const closed: Places = new Set<Place>(['ToolDefinition', 'ToolInput', 'ToolOutput', 'Reasoning'])

const membersAt: Readonly<Record<Exclude<Place, 'Messages'>, string>> = {
  SystemPrompt: 'system instructions systemInstruction system_instruction',
  ToolDefinition:
    'tools functions toolConfig parameters input_schema schema json_schema response_format output_config output_format outputConfig generationConfig generation_config',
  ToolInput:
    'arguments partial_json args tool_calls function_call functionCall toolUse action actions operation environment',
  ToolOutput:
    'output outputs results toolResult functionResponse function_response response stdout stderr logs',
  Reasoning:
    'thinking reasoning reasoning_content reasoning_details thinking_blocks reasoningContent',
  Documents:
    'document documents file_data fileData annotations annotation citations citation search_results',
  FileNames: 'filename file_name fileName displayName display_name',
}
const byMember = new Map(
  Object.entries(membersAt).flatMap(([place, names]) =>
    names.split(' ').map((name) => [name, place as Place] as const),
  ),
)

const byRole = new Map<unknown, Place>([
  ['system', 'SystemPrompt'],
  ['developer', 'SystemPrompt'],
  ['tool', 'ToolOutput'],
  ['function', 'ToolOutput'],
])

/** Types of parts and items, by their names. */
const byType: readonly (readonly [RegExp, Place])[] = [
  [/^(?:document|file|input_file|search_result)$/, 'Documents'],
  [/^(?:reasoning|thinking|redacted_thinking|reasoning_text|summary_text)$/, 'Reasoning'],
  [/^mcp_list_tools$/, 'ToolDefinition'],
  [/(?:_output|tool_result)$/, 'ToolOutput'],
  [/(?:tool_use|_call)$/, 'ToolInput'],
]

/** Returns the place of what an object contains, by its type. `place` is that of the object. */
export function placeOfObject(object: unknown, place: Place, own: PartRules | undefined): Place {
  if (closed.has(place) || typeof object !== 'object' || object === null) return place
  const { type } = object as JsonObject
  if (own?.isReasoning(object as JsonObject) === true) return 'Reasoning'
  if (typeof type !== 'string') return place
  return byType.find(([pattern]) => pattern.test(type))?.[1] ?? place
}

/** Returns the place of a message by its role. */
export const placeOfMessage = ({ role }: JsonObject): Place => byRole.get(role) ?? 'Messages'

/** Returns the place of a member of an object at `place`. */
export function placeOfMember(
  holder: JsonObject,
  name: string,
  place: Place,
  own: PartRules | undefined,
): Place {
  if (closed.has(place)) return place
  const inside = placeOfObject(holder, place, own)
  // An item about a call that the vendor runs contains the result as well.
  const member = byMember.get(name)
  if (member === undefined || (closed.has(inside) && member !== 'ToolOutput')) return inside
  return inside === 'ToolOutput' ? inside : member
}

/** Returns the place of a top-level setting of a request. The setting `text` has the schema of the response. */
export const placeOfSetting = (name: string): Place =>
  name === 'text' || byMember.get(name) === 'ToolDefinition' ? 'ToolDefinition' : 'Messages'

/** Returns the place of a document that a string at `place` contains. */
export const placeOfDocument = (place: Place): Place => (closed.has(place) ? place : 'Documents')
