import { describe, expect, it } from 'vitest'
import { clientDestinationFilter, destinationFilter } from './destination-rules.ts'

const none = { allow: [], refuse: [] }

describe('destinationFilter [CVE-2026-55245]', () => {
  const isAllowed = destinationFilter({ ...none, loopback: true })

  it.each([
    '169.254.169.254',
    '169.254.0.1',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
    '100.100.100.200',
  ])('refuses %s as link-local or metadata service', (address) =>
    expect(isAllowed(address)).toBe(false),
  )

  it.each(['10.0.0.1', '192.168.1.1', '127.0.0.1', '::1', 'fd00::1', '93.184.216.34'])(
    'allows %s',
    (address) => expect(isAllowed(address)).toBe(true),
  )

  it.each(['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1'])(
    'refuses %s if loopback is refused',
    (address) => expect(destinationFilter({ ...none, loopback: false })(address)).toBe(false),
  )

  it.each(['0.0.0.0', '::', '::ffff:0.0.0.0'])(
    'refuses %s if a rule refuses loopback addresses',
    (address) => {
      const refusing = (refuse: string[]) =>
        destinationFilter({ allow: [], refuse, loopback: true })
      expect(refusing(['127.0.0.0/8', '::1'])(address)).toBe(false)
      expect(refusing(['127.0.0.1'])(address)).toBe(false)
      expect(refusing(['10.0.0.0/8'])(address)).toBe(true)
    },
  )

  it('allows and refuses additional ranges by configuration', () => {
    const rules = { allow: ['169.254.1.0/24'], refuse: ['10.0.0.0/8', 'fd00::/8'], loopback: true }
    const isAllowed = destinationFilter(rules)
    expect(isAllowed('169.254.1.7')).toBe(true)
    expect(isAllowed('169.254.2.7')).toBe(false)
    expect(isAllowed('10.1.2.3')).toBe(false)
    expect(isAllowed('fd00::1')).toBe(false)
  })

  it('rejects a rule that is not an IP address or CIDR', () =>
    expect(() => destinationFilter({ ...none, refuse: ['10.0.0/8'], loopback: true })).toThrow(
      '10.0.0/8 is not an IP address or CIDR',
    ))
})

describe('clientDestinationFilter', () => {
  const isAllowed = clientDestinationFilter({ ...none, loopback: true })

  it.each([
    ...['10.0.0.1', '100.64.0.1', '172.16.5.4', '172.31.255.255', '192.168.1.1', '198.19.0.1'],
    ...[
      '0.1.2.3',
      '0.0.0.0',
      '::',
      '::ffff:0.0.0.0',
      '224.0.0.1',
      '255.255.255.255',
      'fd00::1',
      'fec0::1',
      'ff02::1',
      '2001::1',
    ],
    ...['::ffff:10.0.0.1', '64:ff9b::10.0.0.1', '2002:0a00:0001::1', '169.254.169.254'],
  ])('refuses %s, which is inside a network', (address) => expect(isAllowed(address)).toBe(false))

  it.each(['127.0.0.1', '172.32.0.1', '93.184.216.34', '2606:4700::1111', '2001:db8::1'])(
    'allows %s',
    (address) => expect(isAllowed(address)).toBe(true),
  )

  it('allows ranges that a setting allows', () => {
    const rules = { ...none, allow: ['10.1.0.0/16'], loopback: false }
    expect(clientDestinationFilter(rules)('10.1.2.3')).toBe(true)
    expect(clientDestinationFilter(rules)('10.2.2.3')).toBe(false)
    expect(clientDestinationFilter(rules)('127.0.0.1')).toBe(false)
  })
})
