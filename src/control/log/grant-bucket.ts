/** The grants of users in a key-value bucket of a NATS server, for several replicas. */
import {
  type GrantEntry,
  type GrantStore,
  grantText,
  kindOfKey,
  readGrant,
} from '../../ground/model/grants.ts'
import { NatsRecord } from './nats-record.ts'

const timeoutMs = 5_000
/** Maximum number of entries that a list reads at once, so that each is read within the timeout. */
const pageSize = 64

/** `servers` are addresses of servers of one cluster, separated by commas. Nothing is opened before the first call. */
export function openGrantBucket(servers: string): GrantStore {
  const bucket = new NatsRecord({ servers, bucket: 'sluice_grants', key: '' })
  const get: GrantStore['get'] = async (key) => {
    const found = await bucket.read(timeoutMs, key)
    if (found === undefined) return { record: undefined, version: 0 }
    return { record: readGrant(found.text), version: found.revision }
  }
  return {
    get,
    put: (key, record, expected) => bucket.write(grantText(record), expected, timeoutMs, key),
    async list(kind, limit) {
      const keys = await bucket.keys(timeoutMs, kind === 'grant' ? '*' : `${kind}.>`)
      const listed = limit === undefined ? [...keys].sort() : randomSlice(keys, limit)
      const entries: GrantEntry[] = []
      for (let first = 0; first < listed.length; first += pageSize) {
        const page = listed.slice(first, first + pageSize)
        entries.push(
          ...(await Promise.all(page.map(async (key) => [key, await get(key)] as const))),
        )
      }
      return entries
    },
    async remove(key) {
      if (kindOfKey(key) !== 'grant') await bucket.remove(timeoutMs, key)
    },
    close: () => bucket.close(),
  }
}

/** Returns `limit` consecutive keys, starting with a random one. */
function randomSlice(keys: readonly string[], limit: number): readonly string[] {
  if (keys.length <= limit) return keys
  const first = Math.floor(Math.random() * keys.length)
  return [...keys.slice(first), ...keys.slice(0, first)].slice(0, limit)
}
