import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { ControllerStream, type StreamOptions } from './stream.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-stream-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const node = { name: 'p', gateway: { namespace: 'ns', name: 'edge' }, addresses: [], version: '1' }

/** Why the first try ends. */
function firstEnd(files: Pick<StreamOptions, 'tokenFile' | 'caFile'>): Promise<string> {
  return new Promise((resolve) => {
    const stream = new ControllerStream({
      addresses: ['127.0.0.1:1'],
      node,
      ...files,
      versions: () => new Map(),
      position: () => undefined,
      onChange: () => undefined,
      onOpen: () => undefined,
      onEnd: (_, why) => {
        stream.close()
        resolve(why)
      },
    })
    stream.start()
  })
}

describe('the connection to a controller', () => {
  it.each([
    ['tokenFile', 'no token', '\n'],
    ['caFile', 'no certificate', 'hello'],
  ])('reports that the %s contains %s', async (option, what, text) => {
    const path = join(folder, option)
    writeFileSync(path, text)
    expect(await firstEnd({ [option]: path })).toBe(`${path} contains ${what}`)
  })
})

describe('the delay before the next stream', () => {
  afterEach(() => vi.useRealTimers())

  /** Number of streams in a minute, if each of them works and ends with the status after 10 ms. */
  function streamsInAMinute(code: status): number {
    vi.useFakeTimers()
    let opened = 0
    const connect = () => {
      opened++
      const events = new EventEmitter()
      const stream = Object.assign(events, {
        write: () => true,
        cancel: () => undefined,
        end: () => events,
      })
      setTimeout(() => stream.emit('data', new Uint8Array()), 5)
      setTimeout(() => stream.emit('status', { code, details: '' }), 10)
      return { stream: stream as never, close: () => undefined }
    }
    const controller = new ControllerStream({
      addresses: ['127.0.0.1:1'],
      node,
      connect,
      versions: () => new Map(),
      position: () => undefined,
      onChange: () => undefined,
      onOpen: () => undefined,
      onEnd: () => undefined,
    })
    controller.start()
    vi.advanceTimersByTime(60_000)
    controller.close()
    return opened
  }

  it('grows while another proxy of the name takes the stream over', () => {
    expect(streamsInAMinute(status.ABORTED)).toBeLessThan(25)
  })

  it('stays short if a stream that worked ends for another reason', () => {
    expect(streamsInAMinute(status.UNAVAILABLE)).toBeGreaterThan(200)
  })
})
