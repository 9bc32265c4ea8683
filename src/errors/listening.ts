/** An address of the process's own that it cannot listen on: one line for whoever gave it. */
import { GatewayError } from './index.ts'

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission is denied; ports below 1024 need a privilege',
  EADDRNOTAVAIL: 'this machine does not have that address',
  EAFNOSUPPORT: 'this machine has no addresses of that family',
  ENOTFOUND: 'its name has no address',
  EAI_AGAIN: 'its name cannot be looked up now',
}

/**
 * `port_in_use` where somebody else listens there, else `address_unusable` with the reason.
 * `name` says which setting it is, such as `admin`; `cause` is the system's error.
 */
export function cannotListen(name: string, address: string, cause: unknown): GatewayError {
  const place = `${name} address ${address}`
  const code = (cause as { code?: string } | null)?.code ?? ''
  if (code === 'EADDRINUSE') return new GatewayError('port_in_use', place, cause)
  const reason = reasons[code] ?? (cause instanceof Error ? cause.message : String(cause))
  return new GatewayError('address_unusable', `${place}: ${reason}`, cause)
}

/** Is it about an address of the process's own? Only who gave that address can repair it. */
export const isAboutAddress = (error: unknown): error is GatewayError =>
  error instanceof GatewayError &&
  (error.code === 'port_in_use' || error.code === 'address_unusable')
