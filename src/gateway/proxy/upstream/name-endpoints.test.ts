import { expect, it } from 'vitest'
import { NameEndpoints } from './name-endpoints.ts'

const six = ['2001:db8::1', '2001:db8::2']
const four = ['192.0.2.1', '192.0.2.2']

function rig(addresses: readonly string[], before?: NameEndpoints) {
  let clock = 0
  const endpoints = new NameEndpoints(addresses, 80, before, () => clock)
  const hosts = (list: NameEndpoints['all']) => list.map(({ address }) => address.host)
  return {
    endpoints,
    preferred: () => hosts(endpoints.preferred),
    rivals: (lead: string) => hosts(endpoints.rivalsOf(lead)),
    at: (ms: number) => {
      clock = ms
    },
  }
}

it('the address family of the first address is preferred, and the families alternate', () => {
  const { preferred, rivals } = rig([...six, ...four])
  expect(preferred()).toEqual(six)
  expect(rivals('2001:db8::2')).toEqual(['192.0.2.1', '2001:db8::1', '192.0.2.2'])
})

it('the winning family is preferred for ten minutes, and the losing address is avoided for one', () => {
  const { endpoints, preferred, rivals, at } = rig([...six, ...four])
  endpoints.won('192.0.2.1', ['2001:db8::1'], [])
  expect(preferred()).toEqual(four)
  expect(rivals('192.0.2.2')).toEqual(['2001:db8::2', '192.0.2.1', '2001:db8::1'])
  at(599_999)
  expect(preferred()).toEqual(four)
  at(600_000)
  expect(preferred()).toEqual(six)
})

it('a losing address is avoided even if its family works otherwise', () => {
  const { endpoints, preferred, at } = rig(four)
  endpoints.won('192.0.2.2', ['192.0.2.1'], [])
  expect(preferred()).toEqual(['192.0.2.2'])
  at(60_000)
  expect(preferred()).toEqual(four)
})

it('an address that refused is tried again after five seconds', () => {
  const { endpoints, preferred, at } = rig(four)
  endpoints.won('192.0.2.2', [], ['192.0.2.1'])
  expect(preferred()).toEqual(['192.0.2.2'])
  at(5_000)
  expect(preferred()).toEqual(four)
})

it('the winner of the latest race is preferred, even if it lost an earlier one', () => {
  const { endpoints, preferred } = rig(['2001:db8::1', '192.0.2.1'])
  endpoints.won('192.0.2.1', ['2001:db8::1'], [])
  endpoints.won('2001:db8::1', ['192.0.2.1'], [])
  expect(preferred()).toEqual(['2001:db8::1'])
})

it('race results are kept if the addresses change', () => {
  const before = rig([...six, ...four])
  before.endpoints.won('192.0.2.1', six, [])
  const { preferred } = rig(['2001:db8::3', '192.0.2.3'], before.endpoints)
  expect(preferred()).toEqual(['192.0.2.3'])
})

it('ejected endpoints are raced last', () => {
  const { endpoints, rivals } = rig([...four, '192.0.2.3'])
  endpoints.endpointAt('192.0.2.2')?.record({ kind: 'unreachable' }, () => 0)
  expect(rivals('192.0.2.1')).toEqual(['192.0.2.3', '192.0.2.2'])
})
