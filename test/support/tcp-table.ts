/** The kernel's tables of connections (Linux). */
import { readFileSync } from 'node:fs'

/** Fields of the lines of /proc/net/tcp about established connections to a loopback port. */
export function connectionsTo(port: number): readonly (readonly string[])[] {
  const remote = `0100007F${suffixOf(port)}`
  const established = '01'
  return linesOf('/proc/net/tcp').filter(([, , to, st]) => to === remote && st === established)
}

/** How many sockets wait for an answer to their SYN, from a port of any address. */
export function attemptsTo(port: number): number {
  const suffix = suffixOf(port)
  const synSent = '02'
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap(linesOf)
    .filter(([, , to = '', state]) => to.endsWith(suffix) && state === synSent).length
}

const suffixOf = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`

const linesOf = (table: string) =>
  readFileSync(table, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
