/** Finds which IP addresses to bind for addresses in settings that mean more than one. */
import { createServer } from 'node:net'

/** Error codes of systems without IPv6, or without an address of that family. */
const familyErrors = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT'])

/** Binds a free port of an IP address. Resolves with the error code if that fails. */
type TryToBind = (host: string) => Promise<string | undefined>

const tryToBind: TryToBind = (host) =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
    server.listen({ host, port: 0, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

let anyAddress: Promise<string> | undefined

/**
 * Resolves with the IP address to bind for a host in a setting. All addresses (`::` or an empty text) become
 * `::`, which serves IPv6 and IPv4, or `0.0.0.0` if the system has no IPv6. Other hosts stay unchanged.
 */
export async function listenHost(host: string, attempt?: TryToBind): Promise<string> {
  if (host !== '' && host !== '::') return host
  if (attempt !== undefined) return findAnyAddress(attempt)
  anyAddress ??= findAnyAddress(tryToBind)
  return anyAddress
}

async function findAnyAddress(attempt: TryToBind): Promise<string> {
  return familyErrors.has((await attempt('::')) ?? '') ? '0.0.0.0' : '::'
}

/** As `listenHost`, but `localhost` becomes the loopback addresses of both families that this machine has. */
export async function listenHosts(
  host: string,
  attempt: TryToBind = tryToBind,
): Promise<readonly string[]> {
  if (host !== 'localhost') return [await listenHost(host)]
  const [four, six] = await Promise.all([attempt('127.0.0.1'), attempt('::1')])
  const hosts = familyErrors.has(four ?? '') ? [] : ['127.0.0.1']
  if (!familyErrors.has(six ?? '')) hosts.push('::1')
  // If neither can be bound, the error of the first is reported.
  return hosts.length === 0 ? ['127.0.0.1'] : hosts
}

/** Writes an address and a port as one text; IPv6 addresses get brackets. */
export function hostAndPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
