import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectionAttemptDelayMs } from '../../src/engines/http/sockets/connection-race.ts'
import type {
  AddressRace,
  UpstreamAddress,
} from '../../src/engines/http/sockets/upstream-address.ts'
import { type Blackhole, startBlackhole } from '../support/blackhole.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { attemptsTo } from '../support/tcp-table.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const refused: UpstreamAddress = { host: '127.0.0.1', port: 1, pool: 'refused' }

const attemptsAt = ({ port }: UpstreamAddress) => attemptsTo(port)

describe.runIf(process.platform === 'linux')('connecting to one of several addresses', () => {
  let holes: Blackhole[]
  let rig: EngineRig
  let clock: ManualClock
  let upstream: RawUpstream
  let wins: { winner: string; slow: string[]; failed: string[] }[]

  const nowhere = (hole: Blackhole | undefined): UpstreamAddress => {
    const port = hole?.port ?? 0
    return { host: '127.0.0.1', port, pool: `nowhere ${port}` }
  }
  const race = (rivals: readonly UpstreamAddress[], isPatient = false): AddressRace => ({
    isPatient,
    rivalsOf: (lead) => rivals.filter(({ pool }) => pool !== lead.pool),
    won: (winner, { slow, failed }) => {
      const poolOf = ({ pool }: UpstreamAddress) => pool
      wins.push({ winner: winner.pool, slow: slow.map(poolOf), failed: failed.map(poolOf) })
    },
  })
  const begin = async (lead: UpstreamAddress, of: AddressRace): Promise<RawConnection> => {
    rig.plane.upstream = lead
    rig.plane.options = {
      connectTimeoutMs: 2_000,
      attemptTimeoutMs: 0,
      requestTimeoutMs: 0,
      race: of,
    }
    const client = await RawConnection.connect(rig.port)
    client.write(get)
    await eventually(() => rig.engine.counters.upstreamConnectionsTotal > 0)
    return client
  }

  beforeAll(async () => {
    holes = [await startBlackhole('127.0.0.1'), await startBlackhole('127.0.0.1')]
  })
  afterAll(async () => {
    for (const hole of holes) await hole.close()
  })
  beforeEach(async () => {
    wins = []
    clock = new ManualClock()
    rig = await startEngine({ clock })
    upstream = await RawUpstream.start()
    upstream.onData = (connection) => {
      if (!connection.text.endsWith('\r\n\r\n')) return
      connection.text = ''
      connection.write(ok)
    }
  })
  afterEach(async () => {
    await rig.close()
    upstream.close()
  })

  it('starts the next attempt after the connection attempt delay, and closes the slower attempt', async () => {
    const lead = nowhere(holes[0])
    const client = await begin(lead, race([upstream.address]))
    clock.advance(connectionAttemptDelayMs - 10)
    expect(attemptsAt(lead)).toBe(1)
    expect(upstream.connections).toHaveLength(0)
    clock.advance(20)
    await client.responses(1)
    expect(client.text).toBe(ok)
    expect(wins).toEqual([{ winner: upstream.address.pool, slow: [lead.pool], failed: [] }])
    expect(attemptsAt(lead)).toBe(0)
    const { upstreamRaceAttempts, upstreamRacesWon } = rig.engine.counters
    expect([upstreamRaceAttempts, upstreamRacesWon]).toEqual([1, { ipv4: 1, ipv6: 0 }])
    // The connection is pooled under the address that it leads to.
    expect(rig.engine.poolStates()).toEqual([
      { endpoint: upstream.address.pool, idle: 1, busy: 0, streams: 0 },
    ])
    rig.plane.upstream = upstream.address
    client.write(get)
    await client.responses(2)
    expect(upstream.connections).toHaveLength(1)
  })

  it('starts the next attempt at once if one is refused, even if the first address is preferred', async () => {
    for (const isPatient of [false, true]) {
      const client = await begin(refused, race([upstream.address], isPatient))
      await client.responses(1)
      expect(client.text).toBe(ok)
    }
    const win = { winner: upstream.address.pool, slow: [], failed: ['refused'] }
    expect(wins).toEqual([win, win])
  })

  it('waits for a preferred address until the connect timeout', async () => {
    const lead = nowhere(holes[0])
    const client = await begin(lead, race([upstream.address], true))
    clock.advance(1_990)
    expect(attemptsAt(lead)).toBe(1)
    clock.advance(20)
    await client.responses(1)
    expect(client.text).toMatch(/^HTTP\/1\.1 504 /)
    expect(upstream.connections).toHaveLength(0)
    expect(rig.plane.errors).toEqual(['connect_timeout'])
  })

  it('applies one connect timeout to all attempts, and leaves none open', async () => {
    const [first, second] = holes.map(nowhere)
    if (first === undefined || second === undefined) throw new Error('there are two')
    const client = await begin(first, race([second]))
    clock.advance(1_990)
    await waitFor('both attempts', () => attemptsAt(first) + attemptsAt(second) === 2)
    clock.advance(20)
    await client.responses(1)
    expect(rig.plane.errors).toEqual(['connect_timeout'])
    expect([attemptsAt(first), attemptsAt(second)]).toEqual([0, 0])
    const { upstreamConnectionsOpen, readBuffersInUse } = rig.engine.counters
    expect([upstreamConnectionsOpen, readBuffersInUse]).toEqual([0, 0])
    const { upstreamRaceAttempts, upstreamRacesWon } = rig.engine.counters
    expect([upstreamRaceAttempts, upstreamRacesWon]).toEqual([1, { ipv4: 0, ipv6: 0 }])
  })

  it('fails once if every address refuses', async () => {
    const client = await begin(refused, race([{ ...refused, port: 2, pool: 'refused too' }]))
    await client.responses(1)
    expect(client.text).toMatch(/^HTTP\/1\.1 503 /)
    expect(rig.plane.errors).toEqual(['connect_failed'])
    expect(wins).toEqual([])
  })

  it('is cancelled together with the request', async () => {
    const lead = nowhere(holes[0])
    const client = await begin(lead, race([upstream.address]))
    client.socket.destroy()
    await waitFor('the end of the attempt', () => attemptsAt(lead) === 0)
    clock.advance(connectionAttemptDelayMs * 2)
    expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
    expect(upstream.connections).toHaveLength(0)
  })
})
