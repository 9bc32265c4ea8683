import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { DnsServer } from '../../../../test/support/dns-server.ts'
import { useFixture } from '../../../../test/support/fixture.ts'
import { HostResolver } from './host-resolver.ts'
import { machineLookup } from './lookup.ts'

/** More than the limits of the lookup, and less than those of the DNS client. */
const promptMs = 1_500

async function timed<Value>(work: Promise<Value>): Promise<Value> {
  const begun = performance.now()
  const value = await work
  expect(performance.now() - begun).toBeLessThan(promptMs)
  return value
}

/** A server that reads questions and never answers. */
async function startSilent() {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const address = `127.0.0.1:${(socket.address() as AddressInfo).port}`
  return { address, close: () => socket.close() }
}

const dns = useFixture(() => new DnsServer().start())
const silent = useFixture(startSilent)

describe('a lookup', () => {
  it('does not wait for IPv6 addresses if those of IPv4 are known', async () => {
    dns.hosts.set('late.example.com', ['192.0.2.1', '::1'])
    const release = dns.withhold('AAAA')
    const found = await timed(machineLookup([dns.address])('late.example.com'))
    expect(found.addresses).toEqual(['192.0.2.1'])
    release()
    expect((await found.complete)?.addresses.toSorted()).toEqual(['192.0.2.1', '::1'])
  })

  it('has the addresses of both families if both are answered', async () => {
    dns.hosts.set('both.example.com', ['192.0.2.1', '::1'])
    const { addresses, complete } = await machineLookup([dns.address])('both.example.com')
    expect([addresses.toSorted(), complete]).toEqual([['192.0.2.1', '::1'], undefined])
  })

  it('asks the next server if the first does not answer, and then asks that one first', async () => {
    dns.hosts.set('a.example.com', ['192.0.2.1'])
    const lookup = machineLookup([silent.address, dns.address])
    expect((await timed(lookup('a.example.com'))).addresses).toEqual(['192.0.2.1'])
    expect((await timed(lookup('a.example.com'))).addresses).toEqual(['192.0.2.1'])
  })

  it('asks the next server if the first fails, but not if a name does not exist', async () => {
    const broken = await new DnsServer().start()
    broken.isBroken = true
    const lookup = machineLookup([broken.address, dns.address])
    expect((await timed(lookup('a.example.com'))).addresses).toEqual(['192.0.2.1'])
    const second = machineLookup([dns.address, broken.address])
    const before = broken.asked.length
    await expect(second('missing.example.com')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    expect(broken.asked.length).toBe(before)
    broken.close()
  })
})

it('a resolver uses late addresses once they are known, unless a newer lookup was answered', async () => {
  const late = Promise.withResolvers<{ addresses: string[]; ttlMs: number }>()
  const resolver = new HostResolver({
    lookup: async () => ({ addresses: ['192.0.2.1'], ttlMs: 60_000, complete: late.promise }),
    now: () => 0,
  })
  expect(await resolver.addresses('a.example.com')).toEqual(['192.0.2.1'])
  late.resolve({ addresses: ['2001:db8::1', '192.0.2.1'], ttlMs: 60_000 })
  await late.promise
  expect(await resolver.addresses('a.example.com')).toEqual(['2001:db8::1', '192.0.2.1'])
})
