/**
 * Fields that the gateway decides: some servers ignore the case of keys, and would read `Model` although the
 * gateway has set, checked or counted `model`.
 */
import { clientFormats } from './formats/index.ts'
import { type JsonObject, objectAt } from './json/json.ts'
import { asciiName, otherCase } from './json/names.ts'
import { parameterFields } from './request/parameters.ts'

/** Fields of requests that the gateway reads, sets or charges by, besides those of the user's settings. */
export const decidedFields: readonly string[] = [
  ...['model', 'stream', 'service_tier', ...parameterFields],
  ...new Set(Object.values(clientFormats).flatMap(({ decidedMembers }) => decidedMembers)),
]
/** Fields with the prompts that settings of the user add. */
export const promptFields = ['messages', 'input', 'system', 'instructions']
const streamOptions = ['include_usage']

type PlainNames = ReadonlyMap<string, string>

const plainNames = (names: readonly string[]): PlainNames =>
  new Map(names.map((name) => [asciiName(name), name]))
const decided = plainNames(decidedFields)
const decidedOptions = plainNames(streamOptions)
const noNames: ReadonlySet<string> = new Set()

/**
 * Checks the keys of a body; `more` are fields that settings of the user decide.
 * @throws LlmError 400 if a key differs from a field that the gateway decides only in case.
 */
export function needDecidedNames(body: JsonObject, more: readonly string[]): void {
  const others = more.length === 0 ? noNames : new Set(more)
  checkNames(body, decided, others)
  if (more.length > 0) checkNames(body, plainNames(more), others)
  const options = objectAt(body, 'stream_options')
  if (options !== undefined) checkNames(options, decidedOptions, noNames)
}

function checkNames(object: JsonObject, names: PlainNames, others: ReadonlySet<string>): void {
  for (const key of Object.keys(object)) {
    const name = names.get(asciiName(key))
    if (name === undefined || name === key || others.has(key)) continue
    throw otherCase(key, name)
  }
}
