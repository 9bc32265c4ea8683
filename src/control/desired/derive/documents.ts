/** Documents in ConfigMaps: JSON or YAML. */
import { parse } from 'yaml'
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import type { ReferencedConfigMap } from '../../../ground/model/references.ts'

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

function parseDocument(text: string): Read {
  try {
    const isJson = text.trimStart().startsWith('{')
    return { value: isJson ? JSON.parse(text) : parse(text, { maxAliasCount: maxAliases }) }
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''
  }
}
