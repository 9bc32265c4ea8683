/**
 * Measures the Rust crate, as users unpack it, against what they would use instead: `tiktoken-rs` for tokens, and
 * `regex` for masks. No row has a bound. It needs cargo; the engine that `test/assets/setup` has built is used if it is
 * there.
 */
import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { findPart } from '../../test/support/parts.ts'
import type { BenchContext, Row } from '../harness.ts'
import { compare, startProgram, writeTexts } from './host-program.ts'
import { cacheFolder, command, pack } from './peers.ts'

/** Builds the program; without the peer if it cannot be downloaded. */
function build(folder: string, { note }: BenchContext): string {
  const name = pack('rust.mjs', join(folder, 'crate'))
  command('tar', ['-xzf', join('crate', name)], folder)
  const main = join(folder, 'main')
  cpSync(join(import.meta.dirname, 'rust'), main, { recursive: true })
  renameSync(join(folder, basename(name, '.crate')), join(main, 'sluice-core'))
  // The versions of the engine that are built already.
  cpSync(join(main, 'sluice-core', 'Cargo.lock'), join(main, 'Cargo.lock'))
  const part = findPart('rust-wasmtime')
  const target = part.found ? part.path : join(cacheFolder(), 'rust-target')
  const cargo = (...args: readonly string[]) =>
    command('cargo', args, main, { CARGO_TARGET_DIR: target })
  try {
    cargo('build', '-q', '--release', '--features', 'tiktoken')
  } catch (error) {
    note(`tiktoken-rs: ${String(error).trim().split('\n').at(-1)}`)
    cargo('build', '-q', '--release')
  }
  return join(target, 'release', 'bench')
}

export default async function rust(context: BenchContext): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-rust-'))
  try {
    writeTexts(join(folder, 'texts'), context)
    const program = await startProgram(build(folder, context), [join(folder, 'texts')])
    try {
      const peers = { id: 'packages.rust', tokenPeer: 'tiktoken-rs', maskPeers: ['regex'] }
      return await compare(program, peers, context)
    } finally {
      program.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
