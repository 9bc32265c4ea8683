/**
 * Measures the Go module, as users download it, against what they would use instead: `tiktoken-go` for tokens, and
 * `regexp` for masks. No row has a bound.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BenchContext, Row } from '../harness.ts'
import { compare, startProgram, writeTexts } from './host-program.ts'
import { command, pack } from './peers.ts'

const peer = 'github.com/pkoukk/tiktoken-go@v0.1.8'
const ranks = join(import.meta.dirname, '../../node_modules/gpt-tokenizer/data/o200k_base.tiktoken')

/** Builds the program; without the peer if it cannot be downloaded. */
function build(folder: string, { note }: BenchContext): string {
  pack('go.mjs', join(folder, 'proxy'))
  cpSync(join(import.meta.dirname, 'go'), join(folder, 'main'), { recursive: true })
  writeFileSync(join(folder, 'main', 'go.mod'), 'module example.com/bench\n\ngo 1.25.0\n')
  const main = join(folder, 'main')
  const go = (args: readonly string[], env: NodeJS.ProcessEnv) =>
    command('go', args, main, { GOTOOLCHAIN: 'local', ...env }).trim()
  const proxies = go(['env', 'GOPROXY'], {})
  // The module is taken from here, and kept out of the cache of the machine.
  const cache = join(go(['env', 'GOMODCACHE'], {}), 'cache', 'download')
  const own = {
    GOPROXY: `file://${join(folder, 'proxy')},file://${cache},${proxies}`,
    GOMODCACHE: join(folder, 'modules'),
    GOFLAGS: '-modcacherw',
    GONOSUMDB: 'sluice.dev',
  }
  go(['get', 'sluice.dev/sluice'], own)
  const tags: string[] = []
  try {
    // Into the cache of the machine first, for the next time.
    go(['mod', 'download', peer], {})
    go(['get', peer], own)
    tags.push('-tags', 'tiktoken')
  } catch (error) {
    note(`${peer}: ${String(error).trim().split('\n').at(-1)}`)
  }
  go(['build', ...tags, '-o', 'bench', '.'], own)
  return join(main, 'bench')
}

export default async function go(context: BenchContext): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-go-'))
  try {
    writeTexts(join(folder, 'texts'), context)
    const program = await startProgram(build(folder, context), [join(folder, 'texts'), ranks])
    try {
      const peers = { id: 'packages.go', tokenPeer: 'tiktoken-go', maskPeers: ['regexp'] }
      return await compare(program, peers, context)
    } finally {
      program.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
