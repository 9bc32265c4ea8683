/**
 * Where the texts of messages are. A guard with a `scope` reads only the places that it names. Members that are not
 * listed here are at the place of what contains them. The `places` of each format list its members for the documentation.
 */
import type { JsonObject } from '../json/json.ts'

/** What a format says of its parts. */
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
/** Places that have texts which guards read only if their scope names the place. */
export const namedOnly: Places = new Set<Place>(['ToolDefinition', 'ToolInput', 'Reasoning'])

/** Everything in these places stays there: a document in the result of a tool is a result. */
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
    'document documents file_data fileData file_data annotations annotation citations citation search_results',
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

/** The place of what is in an object of this type at `place`. */
export function placeOfObject(object: unknown, place: Place, own: PartRules | undefined): Place {
  if (closed.has(place) || typeof object !== 'object' || object === null) return place
  const { type } = object as JsonObject
  if (own?.isReasoning(object as JsonObject) === true) return 'Reasoning'
  if (typeof type !== 'string') return place
  return byType.find(([pattern]) => pattern.test(type))?.[1] ?? place
}

/** The place of a message by its role. */
export const placeOfMessage = ({ role }: JsonObject): Place => byRole.get(role) ?? 'Messages'

/** The place of a member of an object at `place`. */
export function placeOfMember(
  holder: JsonObject,
  name: string,
  place: Place,
  own: PartRules | undefined,
): Place {
  if (closed.has(place)) return place
  const inside = placeOfObject(holder, place, own)
  // Items of calls that the vendor runs have their results, too.
  const member = byMember.get(name)
  if (member === undefined || (closed.has(inside) && member !== 'ToolOutput')) return inside
  return inside === 'ToolOutput' ? inside : member
}

/** The place of a top-level setting of a request. `text` has the schema of the response. */
export const placeOfSetting = (name: string): Place =>
  name === 'text' || byMember.get(name) === 'ToolDefinition' ? 'ToolDefinition' : 'Messages'

/** The place of a document that a string at `place` contains. */
export const placeOfDocument = (place: Place): Place => (closed.has(place) ? place : 'Documents')
