/** OpenAPI documents in ConfigMaps, or that servers serve: JSON or YAML. */
import { parse } from 'yaml'
import type { FetchedDocument, ServedDocument } from '../../../gateway/backends/define.ts'
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import {
  apiDocumentUri,
  type FetchedKeys,
  keySetInput,
  keySetsPendingInput,
  keySetText,
  problemUri,
} from '../../../ground/model/key-sets.ts'
import type { ObjectName } from '../../../ground/model/names.ts'
import type { ReferencedConfigMap } from '../../../ground/model/references.ts'
import type { Reader } from '../graph.ts'

type Read = { readonly value: unknown } | string

/** Documents by their texts, since reading one takes long. */
const known = new BoundedMap<string, Read>(8)

/** Aliases of YAML may repeat a part this often. */
const maxAliases = 100

/** Returns a text if there is no such document, or if it cannot be read. */
export function readDocument(
  configMap: ReferencedConfigMap | undefined,
  label: string,
  key: string,
): Read {
  if (configMap === undefined) return `ConfigMap ${label} does not exist`
  const text = configMap.entry(key)
  if (text === undefined) return `ConfigMap ${label} has no text with the key ${key}`
  let read = known.get(text)
  if (read === undefined) {
    read = parseDocument(text)
    known.set(text, read)
  }
  return typeof read === 'string' ? `key ${key} of ConfigMap ${label}: ${read}` : read
}

/** Requests that the document of a target's server is fetched, and returns the last one that was. */
export function fetchedDocument(
  { section, host, port, path, cacheMs, problemOf }: ServedDocument,
  { namespace, name }: ObjectName,
  read: Reader,
): FetchedDocument {
  const address = { host, port }
  const uri = apiDocumentUri({ namespace, name }, section, address, path)
  const target = { type: 'backend', namespace, name } as const
  read.requestKeySet({ uri, target, address, section, path, cacheMs, problemOf })
  const value = read.input<FetchedKeys>(keySetInput(uri))?.keySet
  const problem = read.input<FetchedKeys>(keySetInput(problemUri(uri)))?.keySet.problem
  return {
    value,
    origin: keySetText(uri).replace(/ \(.*$/, ''),
    problem: typeof problem === 'string' ? problem : undefined,
    isPending: read.input(keySetsPendingInput) === true,
  }
}

/** Returns the reason as a text if the document cannot be read. */
export function parseDocument(text: string): Read {
  try {
    const isJson = text.trimStart().startsWith('{')
    return { value: isJson ? JSON.parse(text) : parse(text, { maxAliasCount: maxAliases }) }
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''
  }
}
