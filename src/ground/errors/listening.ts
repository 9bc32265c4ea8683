/** Errors about addresses of the process itself that it cannot listen on. */
import { GatewayError } from './index.ts'

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission is denied; ports below 1024 need a privilege',
  EADDRNOTAVAIL: 'this machine does not have that address',
  EAFNOSUPPORT: 'this machine has no addresses of that family',
  ENOTFOUND: 'its name has no address',
  EAI_AGAIN: 'its name cannot be looked up now',
}

/**
 * Returns `port_in_use` if another process listens on the address, else `address_unusable` with a reason.
 * @param name name of the setting, such as `admin`
 * @param cause the error of the system
 */
export function cannotListen(name: string, address: string, cause: unknown): GatewayError {
  const setting = `${name} address ${address}`
  const code = (cause as { code?: string } | null)?.code ?? ''
  if (code === 'EADDRINUSE') return new GatewayError('port_in_use', setting, cause)
  const reason = reasons[code] ?? (cause instanceof Error ? cause.message : String(cause))
  return new GatewayError('address_unusable', `${setting}: ${reason}`, cause)
}

const lowPortAdvice =
  'grant CAP_NET_BIND_SERVICE, lower net.ipv4.ip_unprivileged_port_start, or use a port from 1024 on'

/**
 * Why a listener has no port, for its condition.
 * @param port its number, for datagrams with a suffix
 * @param problem what the system, or another listener, says
 */
export function portError(port: number | string, problem: string): GatewayError {
  if (!/\bEACCES\b/.test(problem))
    return new GatewayError('port_in_use', `port ${port}: ${problem}`)
  const advice =
    Number.parseInt(`${port}`, 10) < 1024
      ? `ports below 1024 need a privilege; ${lowPortAdvice}`
      : problem
  return new GatewayError('port_not_permitted', `port ${port}: ${advice}`)
}

/** Returns true if an error says that an address cannot be listened on, which only the operator can fix. */
export const isAboutAddress = (error: unknown): error is GatewayError =>
  error instanceof GatewayError &&
  (error.code === 'port_in_use' || error.code === 'address_unusable')
