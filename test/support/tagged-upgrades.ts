/** Tagged clients that change the protocol of their connection. */
import { request } from 'node:http'
import { taggedFields, tagsIn } from './tagged-upstream.ts'

let count = 0
/** Maximum time for one exchange in milliseconds. */
const patienceMs = 10_000
/** How often a client sends its tag after the upgrade. */
const repetitions = 50

/** Upgrades `total` connections, `parallel` at a time. Returns a line for each of the first wrong ones. */
export async function upgradeAll(
  port: number,
  host: string,
  total: number,
  parallel: number,
): Promise<string[]> {
  const wrong: string[] = []
  let begun = 0
  const worker = async () => {
    while (begun++ < total && wrong.length < 5) {
      const tag = `tag-${++count}-`
      const problem = await upgrade(port, host, tag).catch(String)
      if (problem !== undefined) wrong.push(`${tag}: ${problem}`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return wrong
}

/** Changes the protocol of one connection. Returns what is wrong, and rejects if the connection breaks. */
export function upgrade(port: number, host: string, tag: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host, 'x-tag': tag, connection: 'upgrade', upgrade: 'tags' }
    const signal = AbortSignal.timeout(patienceMs)
    const sent = request({ host: '127.0.0.1', port, path: `/${tag}`, headers, signal })
    sent.on('error', reject)
    sent.on('response', ({ statusCode }) => reject(new Error(`status ${statusCode}`)))
    sent.on('upgrade', (response, socket, first) => {
      let received = first.toString('latin1')
      const expected = tag.repeat(1 + repetitions)
      const check = () => {
        if (received.length < expected.length && expected.startsWith(received)) return
        socket.destroy()
        resolve(problemOf(tag, response.headers, received === expected, received))
      }
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('the connection ended')))
      socket.on('data', (piece: Buffer) => {
        received += piece.toString('latin1')
        check()
      })
      for (let at = 0; at < repetitions; at++) socket.write(tag)
    })
    sent.end()
  })
}

function problemOf(
  tag: string,
  headers: NodeJS.Dict<string | string[]>,
  isSame: boolean,
  received: string,
): string | undefined {
  const foreign = tagsIn(`${JSON.stringify(headers)}${received}`).filter((found) => found !== tag)
  if (foreign.length > 0) return `carries ${foreign.join(' ')}`
  if (!isSame) return `received ${received.slice(0, 80)}`
  const wanted = taggedFields(tag)['x-tag']
  return headers['x-tag'] === wanted ? undefined : `x-tag is ${headers['x-tag']}`
}
