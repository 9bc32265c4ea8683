import { describe, expect, it } from 'vitest'
import type { SluiceEvent } from '../../../events/index.ts'
import { DeliveryRecorder } from './delivery-recorder.ts'

describe('the delivery recorder', () => {
  it('records a proxy again if the log has no stream of it, or another one', () => {
    const recorded: SluiceEvent[] = []
    const recorder = new DeliveryRecorder({ append: (events) => void recorded.push(...events) })
    recorder.connected('p', { gateway: 'apps/a', stream: 'here' })
    recorder.reassert('p', 'here')
    expect(recorded).toHaveLength(1)
    recorder.reassert('p', undefined)
    recorder.reassert('p', 'elsewhere')
    expect(recorded.map(({ data }) => (data as { stream?: string }).stream)).toEqual([
      'here',
      'here',
      'here',
    ])
    recorder.close()
  })
})
