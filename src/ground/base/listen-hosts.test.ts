import { describe, expect, it } from 'vitest'
import { listenHost, listenHosts } from './listen-hosts.ts'

/** A system on which hosts with a code cannot be bound. */
const system = (codes: Record<string, string>) => async (host: string) => codes[host]

describe('listenHost', () => {
  it('takes the IPv4 address for all addresses only if the system has no IPv6', async () => {
    expect(await listenHost('::', system({ '::': 'EAFNOSUPPORT' }))).toBe('0.0.0.0')
    expect(await listenHost('', system({ '::': 'EADDRNOTAVAIL' }))).toBe('0.0.0.0')
    expect(await listenHost('', system({}))).toBe('::')
    expect(await listenHost('::', system({ '::': 'EMFILE' }))).toBe('::')
  })

  it.each(['0.0.0.0', '127.0.0.1', '::1', '192.0.2.1'])('keeps %s', async (host) => {
    expect(await listenHost(host, system({ '::': 'EAFNOSUPPORT' }))).toBe(host)
  })
})

describe('listenHosts', () => {
  it('resolves localhost to the loopback addresses that the machine has', async () => {
    expect(await listenHosts('localhost', system({}))).toEqual(['127.0.0.1', '::1'])
    const onlyFour = system({ '::1': 'EADDRNOTAVAIL' })
    expect(await listenHosts('localhost', onlyFour)).toEqual(['127.0.0.1'])
    const onlySix = system({ '127.0.0.1': 'EADDRNOTAVAIL' })
    expect(await listenHosts('localhost', onlySix)).toEqual(['::1'])
  })
})
