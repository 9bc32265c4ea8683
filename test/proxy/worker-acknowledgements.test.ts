import { describe, expect, it } from 'vitest'
import { InProcessChannel } from '../../src/control/xds/channel.ts'
import { Acknowledgements } from '../../src/gateway/proxy/workers/acknowledgements.ts'
import type {
  WorkerRejection,
  WorkerState,
} from '../../src/gateway/proxy/workers/worker-messages.ts'

const rejection = (key: string, sequence: number, message = 'taken'): WorkerRejection => ({
  key,
  sequence,
  code: 'port_in_use',
  message,
})

const state = (sequence: number, ...rejected: WorkerRejection[]): WorkerState => ({
  sequence,
  rejected,
  bound: [],
  unbound: [],
})

function open() {
  const calls: unknown[][] = []
  const channel = new InProcessChannel({
    onAck: (...answer) => calls.push(['ack', ...answer]),
    onReject: (...answer) => calls.push(['reject', ...answer]),
    onRecover: (...answer) => calls.push(['recover', ...answer]),
  })
  const acknowledgements = new Acknowledgements('local', channel)
  const told = (...states: (WorkerState | undefined)[]) => {
    calls.length = 0
    acknowledgements.update(states)
    return [...calls]
  }
  return { told, acknowledgements }
}

describe('the acknowledgements of a proxy with several workers', () => {
  it('report the position of the slowest worker, once', () => {
    const { told } = open()
    expect(told(state(3), state(-1))).toEqual([])
    expect(told(state(3), state(2))).toEqual([['ack', 'local', 2]])
    expect(told(state(4), state(2))).toEqual([])
    expect(told(state(4), state(4))).toEqual([['ack', 'local', 4]])
  })

  it('wait for a worker that is being replaced, and never go back', () => {
    const { told, acknowledgements } = open()
    told(state(3, rejection('a', 3)), state(3))
    expect(told(undefined, state(4))).toEqual([])
    expect(told(state(-1), state(4))).toEqual([])
    expect(acknowledgements.watermark).toBe(3)
    expect(told(state(4), state(4))).toEqual([
      ['recover', 'local', 4, 'a'],
      ['ack', 'local', 4],
    ])
  })

  it('report a rejected resource before its ack, once for all workers', () => {
    const { told } = open()
    expect(told(state(5, rejection('a', 5)), state(5, rejection('a', 5)))).toEqual([
      ['reject', 'local', 5, 'a', 'port_in_use', 'taken'],
      ['ack', 'local', 5],
    ])
    expect(told(state(6, rejection('a', 5)), state(6, rejection('a', 5)))).toEqual([
      ['ack', 'local', 6],
    ])
  })

  it('report a rejection again if the resource was sent again or fails for another reason', () => {
    const { told } = open()
    told(state(5, rejection('a', 5)))
    expect(told(state(7, rejection('a', 7)))).toEqual([
      ['reject', 'local', 7, 'a', 'port_in_use', 'taken'],
      ['ack', 'local', 7],
    ])
    expect(told(state(7, rejection('a', 7, 'denied')))).toEqual([
      ['reject', 'local', 7, 'a', 'port_in_use', 'denied'],
    ])
  })

  it('report a recovery once the last worker has recovered, and repeat the ack', () => {
    const { told } = open()
    told(state(5, rejection('a', 5)), state(5, rejection('a', 5)))
    expect(told(state(5), state(5, rejection('a', 5)))).toEqual([])
    expect(told(state(5), state(5))).toEqual([
      ['recover', 'local', 5, 'a'],
      ['ack', 'local', 5],
    ])
  })
})
