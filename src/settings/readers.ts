/** What the texts of settings mean; undefined where a text is not of its form. */
import { isIP } from 'node:net'
import { bareHost } from '../base/bare-host.ts'
import { parseDurationMs } from '../base/duration.ts'

const addressPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]]*):([0-9]{1,5})$/

export function readAddress(text: string): string | undefined {
  if (text === 'off') return text
  const port = addressPattern.exec(text)?.[1]
  return port !== undefined && Number(port) <= 65_535 ? text : undefined
}

export function readWorkers(text: string): number | 'auto' | undefined {
  if (text === 'auto') return text
  const count = Number(text)
  return /^[0-9]{1,3}$/.test(text) && count >= 1 && count <= 256 ? count : undefined
}

export const readPath = (text: string): string => text

/** Of this machine; brackets around an IPv6 address are taken off. */
export function readLocalAddress(text: string): string | undefined {
  if (text === 'localhost') return text
  const bare = bareHost(text)
  return isIP(bare) === 0 ? undefined : bare
}

export const readHost = (text: string) => (/^[^\s/]+$/.test(text) ? text : undefined)

export const readWord =
  <const Word extends string>(...words: Word[]) =>
  (text: string): Word | undefined =>
    words.find((known) => known === text)

/** Addresses and CIDRs; each is checked here, so that a typing error never opens or closes a door. */
export function readRanges(text: string): readonly string[] | undefined {
  const ranges = text.split(',').map((part) => part.trim())
  return ranges.every(isRange) ? ranges : undefined
}

const serverPattern = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/

/** Addresses of servers, each with a port or without: `192.0.2.53`, `[::1]:5353`, `::1`. */
export function readServers(text: string): readonly string[] | undefined {
  const servers = text.split(',').map((part) => part.trim())
  return servers.every(isServer) ? servers : undefined
}

function isServer(text: string): boolean {
  if (isIP(text) !== 0) return true
  const [, bracketed, plain = '', port = '53'] = serverPattern.exec(text) ?? []
  const isAddress = bracketed === undefined ? isIP(plain) === 4 : isIP(bracketed) === 6
  return isAddress && Number(port) > 0 && Number(port) <= 65_535
}

function isRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  if (bits === undefined) return true
  return /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

/** Whole seconds, or a duration such as `1m30s`; gives milliseconds. */
export function readDelay(text: string): number | undefined {
  const [, seconds] = /^([0-9]{1,8})s?$/.exec(text) ?? []
  return seconds === undefined ? parseDurationMs(text) : Number(seconds) * 1_000
}

export const readPositiveDelay = (text: string) => readDelay(text) || undefined

export function readCount(text: string): number | undefined {
  const count = Number(text)
  return /^[0-9]{1,7}$/.test(text) && count >= 1 && count <= 1_000_000 ? count : undefined
}

export function readRate(text: string): number | undefined {
  const rate = Number(text)
  return /^[0-9]{1,10}$/.test(text) && rate <= 1_000_000_000 ? rate : undefined
}

/** RFC 8446 4.6.1. */
const longestSessionMs = 7 * 24 * 3_600_000

/** Whole seconds, as TLS counts them; gives milliseconds. */
export function readSessionLifetime(text: string): number | undefined {
  const delay = readDelay(text)
  const fits = delay !== undefined && delay >= 1_000 && delay <= longestSessionMs
  return fits && delay % 1_000 === 0 ? delay : undefined
}

export const sessionLifetimeForm = 'whole seconds, or a duration such as `30m`, at most one week'
export const addressForm = '`host:port`, `:port` or `off`'
export const delayForm = 'seconds, or a duration such as `30s`'
