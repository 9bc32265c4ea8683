/** Functions for IP addresses and networks, as in Kubernetes. */
import { isCelError } from '../error.ts'
import { CelCidr, CelIp, parseCidr, parseIp } from '../ip.ts'
import type { CelResult, CelValue } from '../value.ts'
import { type CelFunction, type FunctionTable, fixed, ofText, wrongTypes } from './define.ts'

function ofIp(name: string, apply: (ip: CelIp) => CelResult): CelFunction {
  return fixed('method', 1, (_, value) =>
    value instanceof CelIp ? apply(value) : wrongTypes(name, value),
  )
}

function ofCidr(name: string, apply: (cidr: CelCidr) => CelResult): CelFunction {
  return fixed('method', 1, (_, value) =>
    value instanceof CelCidr ? apply(value) : wrongTypes(name, value),
  )
}

/** `ip(text)`, `ip(ip)` and `network.ip()`, which returns the address of a network. */
function ip(value: CelValue): CelResult {
  if (typeof value === 'string') return parseIp(value)
  if (value instanceof CelIp) return value
  return value instanceof CelCidr ? value.address : wrongTypes('ip', value)
}

function cidr(value: CelValue): CelResult {
  if (typeof value === 'string') return parseCidr(value)
  return value instanceof CelCidr ? value : wrongTypes('cidr', value)
}

function containsIp(network: CelValue, value: CelValue): CelResult {
  const address = typeof value === 'string' ? parseIp(value) : value
  if (isCelError(address)) return address
  return network instanceof CelCidr && address instanceof CelIp
    ? network.containsIp(address)
    : wrongTypes('containsIP', network, value)
}

function containsCidr(network: CelValue, value: CelValue): CelResult {
  const other = typeof value === 'string' ? parseCidr(value) : value
  if (isCelError(other)) return other
  return network instanceof CelCidr && other instanceof CelCidr
    ? network.containsCidr(other)
    : wrongTypes('containsCIDR', network, value)
}

function isCanonical(text: string): CelResult {
  const address = parseIp(text)
  return isCelError(address) ? address : address.toString() === text
}

export const networkFunctions: FunctionTable = {
  ip: fixed('either', 1, (_, value) => ip(value)),
  cidr: fixed('function', 1, (_, value) => cidr(value)),
  isIP: ofText('isIP', 'function', (text) => !isCelError(parseIp(text))),
  isCIDR: ofText('isCIDR', 'function', (text) => !isCelError(parseCidr(text))),
  'ip.isCanonical': ofText('ip.isCanonical', 'function', isCanonical),
  family: ofIp('family', (address) => BigInt(address.family)),
  isUnspecified: ofIp('isUnspecified', (address) => address.isUnspecified),
  isLoopback: ofIp('isLoopback', (address) => address.isLoopback),
  isLinkLocalMulticast: ofIp('isLinkLocalMulticast', (address) => address.isLinkLocalMulticast),
  isLinkLocalUnicast: ofIp('isLinkLocalUnicast', (address) => address.isLinkLocalUnicast),
  isGlobalUnicast: ofIp('isGlobalUnicast', (address) => address.isGlobalUnicast),
  containsIP: fixed('method', 2, (_, network, address) => containsIp(network, address)),
  containsCIDR: fixed('method', 2, (_, network, other) => containsCidr(network, other)),
  masked: ofCidr('masked', (network) => network.masked()),
  prefixLength: ofCidr('prefixLength', (network) => BigInt(network.prefixLength)),
}
