/** Where the grants of users are kept: in a file, or on NATS servers. */
import type { GrantStore } from '../../../ground/model/grants.ts'

/** The default file, next to the event log. */
export const grantFileOf = (logFile: string): string => `${logFile}.grants`

const isServers = (place: string): boolean => /^(?:nats|tls):\/\//.test(place)

/** Opens a store. Rejects if the file cannot be used. */
export async function openGrants(place: string): Promise<GrantStore> {
  if (isServers(place)) {
    const { openGrantBucket } = await import('../../../control/log/grant-bucket.ts')
    return openGrantBucket(place)
  }
  const { openGrantFile } = await import('../../../control/log/grant-file.ts')
  return openGrantFile(place)
}

/** A store that is opened with its first use, and again if that fails. */
export function lateGrantStore(place: string): GrantStore {
  let opened: Promise<GrantStore> | undefined
  const store = () => {
    opened ??= openGrants(place).catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }
  return {
    get: async (key) => (await store()).get(key),
    put: async (key, record, expected) => (await store()).put(key, record, expected),
    list: async (kind, limit) => (await store()).list(kind, limit),
    remove: async (key) => (await store()).remove(key),
    close: async () => (await opened)?.close(),
  }
}
