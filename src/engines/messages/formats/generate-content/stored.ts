/**
 * Where requests have ids of what the provider stores: caches, files, and stores for searches. The gateway serves no
 * paths by which clients could make them, so that all of them are the provider account's, and are refused.
 */
import type { JsonObject } from '../../json/json.ts'
import { asciiName } from '../../json/names.ts'
import { mapMembers, notOfClients } from '../../stored/members.ts'
import { dataNames, inCamelCase } from './names.ts'

const bothCases = (name: string) => [name, name.replace(/[A-Z]/g, '_$&').toLowerCase()]

/** Members that are refused with any value: ids, and tools whose settings are ids. */
const refused = ['cachedContent', 'fileSearch', 'retrieval']

/** A request without these members can be passed on as it came. */
export const storedMembers = {
  any: refused.flatMap(bothCases),
  texts: bothCases('fileUri'),
}

/** A name as a server may read it that ignores case and underscores. */
const bareName = (name: string): string => asciiName(name).replaceAll('_', '')

const refusedNames: ReadonlySet<string> = new Set(refused.map(bareName))
const fileName = bareName('fileUri')

/** Hosts of the vendor's APIs, where a location is an id. Its object store serves public files at another one. */
const apiHost = /(?:^|\.)googleapis\.com\.?$/
const publicHost = 'storage.googleapis.com'

/** Paths of files of the API below any host: the provider may be reached by another name. */
const filePath = /\/v\d\w*\/files\/[^/]+\/?$/

/** Whether a location is one in the web or in an object store, and not the id of a file. */
function isLocation(uri: string): boolean {
  if (uri.startsWith('gs://')) return true
  const url = URL.parse(uri)
  if (url === null || !/^https?:$/.test(url.protocol)) return false
  const isOfVendor = apiHost.test(url.hostname) && url.hostname !== publicHost
  return !isOfVendor && !filePath.test(url.pathname)
}

/** Returns the same request. @throws LlmError 400 if it names something that the provider stores */
export function refuseStored(body: JsonObject): JsonObject {
  mapMembers(body, '', (name, member, path) => {
    if (dataNames.has(inCamelCase(name))) return member
    const bare = bareName(name)
    if (refusedNames.has(bare) && member != null) throw notOfClients(path)
    if (bare !== fileName || typeof member !== 'string') return undefined
    if (!isLocation(member)) throw notOfClients(path)
    return member
  })
  return body
}
