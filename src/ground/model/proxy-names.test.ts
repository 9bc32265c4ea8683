import { describe, expect, it } from 'vitest'
import { proxyObjectName } from './proxy-names.ts'

describe('names of deployed objects', () => {
  it.each(['edge', 'a', 'a-1', 'a'.repeat(63)])(
    'are the name of the Gateway if it is a valid Service name: %s',
    (name) => {
      expect(proxyObjectName(name)).toBe(name)
    },
  )

  it.each(['my.gateway', '2nd', 'a'.repeat(64), `${'a'.repeat(49)}.${'b'.repeat(200)}`, '1.2.3'])(
    'are a unique valid Service name for any other Gateway: %s',
    (name) => {
      const safe = proxyObjectName(name)
      expect(safe).toMatch(/^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/)
      expect(safe).toMatch(/-[0-9a-f]{12}$/)
      expect(safe).not.toContain('--')
      expect(proxyObjectName(`${name}x`)).not.toBe(safe)
    },
  )
})
