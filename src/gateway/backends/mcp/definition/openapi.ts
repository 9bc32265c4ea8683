/** Targets that are APIs: reads and checks their documents. */
import { parseDurationMs } from '../../../../ground/base/duration.ts'
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
  /** True if the target is left out, because its document is not known. */
  readonly isMissing?: boolean
}

/** Length of a document as JSON; messages to proxies have at most 4 MiB. */
const maxLength = 2_097_152
/** Maximum number of operations that a note names. */
const maxNamed = 5

export function openApiOf(
  name: string,
  spec: StaticSpec,
  place: string,
  reader: BackendReader,
): ReadOpenApi {
  const { openapi } = spec
  if (openapi === undefined) return { member: {}, notes: [], problems: [] }
  const { configMap } = openapi
  if (configMap === undefined) return servedDocument(name, spec, openapi, place, reader)
  const read = reader.document(configMap.name, configMap.key ?? defaultKey)
  return typeof read === 'string'
    ? refused(place, read)
    : checked(name, openapi, read, place, reader)
}

/** How often documents are fetched unless `cacheDuration` is set, in milliseconds. */
const defaultCacheMs = 300_000

/** Reads the document that the server of the target serves. */
function servedDocument(
  name: string,
  { host, port }: StaticSpec,
  openapi: OpenApiSpec,
  place: string,
  reader: BackendReader,
): ReadOpenApi {
  const cacheMs = parseDurationMs(openapi.cacheDuration) ?? defaultCacheMs
  const { path: given = '/' } = openapi
  const path = given.startsWith('/') ? given : `/${given}`
  const references = referencesOf(openapi, reader)
  const problemOf = (document: unknown) => {
    // Without its references, no document can be judged.
    if (typeof references === 'string') return undefined
    const found = compiled(name, openapi, { document, ...references })
    return typeof found === 'string' ? found : undefined
  }
  const found = reader.fetchedDocument({ section: name, host, port, path, cacheMs, problemOf })
  const { value, origin, problem = 'it has not been fetched yet' } = found
  const at = `${place}.path: ${origin}`
  if (value === undefined && found.isPending) {
    const note = `${at}: the document is fetched when the gateway runs`
    return { member: {}, notes: [note], problems: [], isMissing: true }
  }
  if (value === undefined) return refused(at, problem)
  const read = checked(name, openapi, { value }, `${place}: document of ${origin}`, reader)
  if (found.problem === undefined) return read
  const note = `${at}: ${found.problem}. The last document stays in use; fetching is retried`
  return { ...read, notes: [...read.notes, note] }
}

/** Checks a document with those to which it refers. */
function checked(
  name: string,
  openapi: OpenApiSpec,
  read: { readonly value: unknown },
  place: string,
  reader: BackendReader,
): ReadOpenApi {
  const references = referencesOf(openapi, reader)
  if (typeof references === 'string') return refused(place, references)
  // The results of a document do not cover changes of others.
  if (references.references !== undefined) {
    return check(name, openapi, { document: read.value, ...references }, place)
  }
  const results = resultsOf(read.value)
  const key = JSON.stringify([place, name, openapi])
  const before = results?.get(key)
  if (before !== undefined) return before
  const found = check(name, openapi, { document: read.value }, place)
  results?.set(key, found)
  return found
}

type References = Pick<OpenApiSource, 'references'>

/** Reads the documents to which the document refers. Returns the reason as a text if one is missing. */
function referencesOf({ references }: OpenApiSpec, reader: BackendReader): References | string {
  if (references === undefined) return {}
  const others: [string, unknown][] = []
  for (const { ref, configMap } of references) {
    const found = reader.document(configMap.name, configMap.key ?? defaultKey)
    if (typeof found === 'string') return `references ${ref}: ${found}`
    others.push([ref, found.value])
  }
  return { references: Object.fromEntries(others) }
}

const defaultKey = 'openapi.yaml'

const refused = (place: string, why: string): ReadOpenApi => {
  return { member: {}, notes: [], problems: [`${place}: ${why}`] }
}

/** Results by documents, because a backend is derived again with each change of what its targets list. */
const resultsByDocument = new WeakMap<object, Map<string, ReadOpenApi>>()

function resultsOf(document: unknown): Map<string, ReadOpenApi> | undefined {
  if (typeof document !== 'object' || document === null) return undefined
  const found = resultsByDocument.get(document) ?? new Map<string, ReadOpenApi>()
  resultsByDocument.set(document, found)
  return found
}

function check(
  name: string,
  openapi: OpenApiSpec,
  documents: Documents,
  place: string,
): ReadOpenApi {
  const found = compiled(name, openapi, documents)
  if (typeof found === 'string') return refused(place, found)
  const { json, problems } = found
  const more = problems.length > maxNamed ? [`${problems.length - maxNamed} more`] : []
  const named = [...problems.slice(0, maxNamed), ...more].join('; ')
  const notes = named === '' ? [] : [`${place}: operations that are no tools: ${named}`]
  return { member: { openapi: json }, notes, problems: [] }
}

type Documents = Pick<OpenApiSource, 'document' | 'references'>

/** Returns the reason as a text if the document cannot be used. */
function compiled(
  name: string,
  openapi: OpenApiSpec,
  documents: Documents,
): { readonly json: string; readonly problems: readonly string[] } | string {
  const { maxResultSize, maxPages, outputSchemas, include, exclude, tools: renamed } = openapi
  const source: OpenApiSource = {
    ...documents,
    ...(include && { include }),
    ...(exclude && { exclude }),
    ...(renamed && { tools: renamed }),
    ...(maxResultSize !== undefined && { maxResultBytes: maxResultSize }),
    ...(maxPages !== undefined && { maxPages }),
    ...(outputSchemas === true && { hasOutputSchemas: true }),
  }
  const json = JSON.stringify(source)
  if (json.length > maxLength) return `the document has more than ${maxLength} characters`
  try {
    const { tools, problems } = compileDocument(source, name)
    return tools.size === 0
      ? ['no operation becomes a tool', ...problems.slice(0, maxNamed)].join('; ')
      : { json, problems }
  } catch (error) {
    if (!(error instanceof DocumentProblem)) throw error
    return error.message
  }
}
