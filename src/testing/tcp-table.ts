/** The kernel's table of IPv4 connections (Linux). */
import { readFileSync } from 'node:fs'

/** Fields of the lines of /proc/net/tcp about established connections to a loopback port. */
export function connectionsTo(port: number): readonly (readonly string[])[] {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const established = '01'
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , to, state]) => to === remote && state === established)
}
