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
import { compare, joinPrograms, startProgram, writeTexts } from './host-program.ts'
import { cacheFolder, command, pack } from './peers.ts'

/** Builds the program with the crate, and that with its peers unless they cannot be downloaded. */
function build(folder: string, { note }: BenchContext): string[] {
  const name = pack('rust.mjs', join(folder, 'crate'))
  command('tar', ['-xzmf', join('crate', name)], folder)
  const main = join(folder, 'main')
  cpSync(join(import.meta.dirname, 'rust'), main, { recursive: true })
  renameSync(join(folder, basename(name, '.crate')), join(main, 'sluice-core'))
  // The versions of the engine that are built already.
  cpSync(join(main, 'sluice-core', 'Cargo.lock'), join(main, 'Cargo.lock'))
  const own = join(cacheFolder(), 'rust-target')
  const cargo = (feature: string, target: string, level: string) => {
    command('cargo', ['build', '-q', '--release', '--features', feature], main, {
      CARGO_TARGET_DIR: target,
      CARGO_PROFILE_RELEASE_OPT_LEVEL: level,
      CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
    })
    const program = join(folder, feature)
    cpSync(join(target, 'release', 'bench'), program)
    return program
  }
  const part = findPart('rust-wasmtime')
  // As test/assets/setup builds the engine: what the engine makes of the core is the same at every level.
  const programs = [part.found ? cargo('core', part.path, '1') : cargo('core', own, '3')]
  try {
    programs.push(cargo('peers', own, '3'))
  } catch (error) {
    note(`peers: ${String(error).trim().split('\n').at(-1)}`)
  }
  return programs
}

export default async function rust(context: BenchContext): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-rust-'))
  try {
    writeTexts(join(folder, 'texts'), context)
    const commands = build(folder, context)
    const args = [join(folder, 'texts')]
    const program = joinPrograms(
      await Promise.all(commands.map((each) => startProgram(each, args))),
    )
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
