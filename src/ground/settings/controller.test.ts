import { describe, expect, it } from 'vitest'
import { readControllerSettings } from './controller.ts'

describe('the settings of the controller', () => {
  it('accept only nats:// and tls:// URLs of a NATS server', () => {
    const isTaken = (nats: string) => readControllerSettings({ nats }, {}).ok
    for (const server of ['nats://127.0.0.1:4222', 'tls://me:p%20w@nats.example', 'nats://[::1]:1'])
      expect(isTaken(server), server).toBe(true)
    for (const server of ['http://nats.example:4222', 'nats.example:4222', 'nats://', 'nats://a b'])
      expect(isTaken(server), server).toBe(false)
  })
})
