import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
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
