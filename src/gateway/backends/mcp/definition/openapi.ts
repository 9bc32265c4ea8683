/** Targets that are APIs: reads and checks their documents. */
import type { BackendReader } from '../../define.ts'
import { DocumentProblem } from '../openapi/document.ts'
import { compileDocument } from '../openapi/operations.ts'
import type { OpenApiSource } from '../openapi/settings.ts'
import type { McpSpec } from './schema.ts'

type StaticSpec = NonNullable<McpSpec['targets'][number]['static']>
type OpenApiSpec = NonNullable<StaticSpec['openapi']>

interface ReadOpenApi {
  /** The member of the target; empty if it is no API. */
  readonly member: { readonly openapi?: string }
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

/** Length of a document as JSON; messages to proxies have at most 4 MiB. */
const maxLength = 2_097_152
/** Maximum number of operations that a note names. */
const maxNamed = 5

export function openApiOf(
  name: string,
  { openapi }: StaticSpec,
  place: string,
  reader: BackendReader,
): ReadOpenApi {
  if (openapi === undefined) return { member: {}, notes: [], problems: [] }
  const { configMap, references = [] } = openapi
  const read = reader.document(configMap.name, configMap.key ?? defaultKey)
  if (typeof read === 'string') return refused(place, read)
  const others: [string, unknown][] = []
  for (const { ref, configMap: other } of references) {
    const found = reader.document(other.name, other.key ?? defaultKey)
    if (typeof found === 'string') return refused(place, `references ${ref}: ${found}`)
    others.push([ref, found.value])
  }
  // The results of a document do not cover changes of others.
  if (references.length > 0) {
    const documents = { document: read.value, references: Object.fromEntries(others) }
    return check(name, openapi, documents, place)
  }
  const checked = checkedFor(read.value)
  const key = JSON.stringify([place, name, openapi])
  const before = checked?.get(key)
  if (before !== undefined) return before
  const found = check(name, openapi, { document: read.value }, place)
  checked?.set(key, found)
  return found
}

const defaultKey = 'openapi.yaml'

const refused = (place: string, why: string): ReadOpenApi => {
  return { member: {}, notes: [], problems: [`${place}: ${why}`] }
}

/** Results by documents, because a backend is derived again with each change of what its targets list. */
const results = new WeakMap<object, Map<string, ReadOpenApi>>()

function checkedFor(document: unknown): Map<string, ReadOpenApi> | undefined {
  if (typeof document !== 'object' || document === null) return undefined
  const found = results.get(document) ?? new Map<string, ReadOpenApi>()
  results.set(document, found)
  return found
}

function check(
  name: string,
  openapi: OpenApiSpec,
  documents: Pick<OpenApiSource, 'document' | 'references'>,
  place: string,
): ReadOpenApi {
  const { maxResultSize, outputSchemas, configMap: _, references: __, ...choice } = openapi
  const source: OpenApiSource = {
    ...documents,
    ...choice,
    ...(maxResultSize !== undefined && { maxResultBytes: maxResultSize }),
    ...(outputSchemas === true && { hasOutputSchemas: true }),
  }
  const json = JSON.stringify(source)
  if (json.length > maxLength)
    return refused(place, `the document has more than ${maxLength} characters`)
  try {
    const { tools, problems } = compileDocument(source, name)
    if (tools.size === 0)
      return refused(place, ['no operation becomes a tool', ...problems].join('; '))
    const more = problems.length > maxNamed ? [`${problems.length - maxNamed} more`] : []
    const named = [...problems.slice(0, maxNamed), ...more].join('; ')
    const notes = named === '' ? [] : [`${place}: operations that are no tools: ${named}`]
    return { member: { openapi: json }, notes, problems: [] }
  } catch (error) {
    if (!(error instanceof DocumentProblem)) throw error
    return refused(place, error.message)
  }
}
