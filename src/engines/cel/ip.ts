/** IP addresses and networks, for the functions `ip` and `cidr` as Kubernetes defines them. */
import { isIpv4, isIpv6 } from '../../ground/base/ip-address.ts'
import { CelError } from './error.ts'

export class CelIp {
  readonly celType = 'net.IP'
  readonly family: 4 | 6
  /** The address as a number. */
  readonly value: bigint

  constructor(family: 4 | 6, value: bigint) {
    this.family = family
    this.value = value
  }

  /** Returns the canonical form (RFC 5952). */
  toString(): string {
    return this.family === 4 ? formatIpv4(this.value) : formatIpv6(this.value)
  }

  get isUnspecified(): boolean {
    return this.value === 0n
  }

  get isLoopback(): boolean {
    return this.family === 4 ? this.value >> 24n === 127n : this.value === 1n
  }

  get isLinkLocalMulticast(): boolean {
    return this.family === 4
      ? this.value >> 8n === 0xe00000n
      : ((this.value >> 112n) & 0xff0fn) === 0xff02n
  }

  get isLinkLocalUnicast(): boolean {
    return this.family === 4 ? this.value >> 16n === 0xa9fen : this.value >> 118n === 0x3fan
  }

  get isMulticast(): boolean {
    return this.family === 4 ? this.value >> 28n === 0xen : this.value >> 120n === 0xffn
  }

  /** True unless the address is unspecified, loopback, multicast, link-local or the broadcast address. */
  get isGlobalUnicast(): boolean {
    const isBroadcast = this.family === 4 && this.value === 0xffffffffn
    return !(
      isBroadcast ||
      this.isUnspecified ||
      this.isLoopback ||
      this.isMulticast ||
      this.isLinkLocalUnicast
    )
  }
}

export class CelCidr {
  readonly celType = 'net.CIDR'
  readonly address: CelIp
  readonly prefixLength: number

  constructor(address: CelIp, prefixLength: number) {
    this.address = address
    this.prefixLength = prefixLength
  }

  toString(): string {
    return `${this.address}/${this.prefixLength}`
  }

  get #shift(): bigint {
    return BigInt((this.address.family === 4 ? 32 : 128) - this.prefixLength)
  }

  /** Returns the network with the bits after the prefix cleared. */
  masked(): CelCidr {
    const value = (this.address.value >> this.#shift) << this.#shift
    return new CelCidr(new CelIp(this.address.family, value), this.prefixLength)
  }

  containsIp(ip: CelIp): boolean {
    const { address } = this
    return ip.family === address.family && ip.value >> this.#shift === address.value >> this.#shift
  }

  containsCidr(other: CelCidr): boolean {
    return other.prefixLength >= this.prefixLength && this.containsIp(other.address)
  }
}

/** Parses an address without a zone. IPv4-mapped IPv6 addresses are rejected, because they are ambiguous. */
export function parseIp(text: string): CelIp | CelError {
  if (isIpv4(text)) return new CelIp(4, ipv4Value(text))
  const bad = new CelError('value', 'the text is not an IP address')
  if (!isIpv6(text) || text.includes('%')) return bad
  const value = ipv6Value(text)
  return value >> 32n === 0xffffn ? bad : new CelIp(6, value)
}

export function parseCidr(text: string): CelCidr | CelError {
  const bad = new CelError('value', 'the text is not a CIDR')
  const slash = text.indexOf('/')
  const ip = parseIp(text.slice(0, Math.max(slash, 0)))
  const length = text.slice(slash + 1)
  if (ip instanceof CelError || !/^(0|[1-9]\d{0,2})$/.test(length)) return bad
  return Number(length) <= (ip.family === 4 ? 32 : 128) ? new CelCidr(ip, Number(length)) : bad
}

function ipv4Value(text: string): bigint {
  return text.split('.').reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

function ipv6Value(text: string): bigint {
  const [head = '', tail] = text.split('::')
  const left = groups(head)
  const right = tail === undefined ? [] : groups(tail)
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => 0n)
  return [...left, ...zeros, ...right].reduce((value, group) => (value << 16n) | group, 0n)
}

function groups(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)]
    const value = ipv4Value(group)
    return [value >> 16n, value & 0xffffn]
  })
}

function formatIpv4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.')
}

function formatIpv6(value: bigint): string {
  const parts = Array.from({ length: 8 }, (_, i) => (value >> BigInt(112 - 16 * i)) & 0xffffn)
  let longest = { start: -1, length: 1 }
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (start + length < 8 && parts[start + length] === 0n) length++
    if (length > longest.length) longest = { start, length }
  }
  const text = (from: number, to?: number) =>
    parts
      .slice(from, to)
      .map((part) => part.toString(16))
      .join(':')
  if (longest.start < 0) return text(0)
  return `${text(0, longest.start)}::${text(longest.start + longest.length)}`
}
