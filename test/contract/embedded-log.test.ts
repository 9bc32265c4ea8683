import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { describeLog } from './log-contract.ts'

describeLog('embedded', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  const open = async () => openEmbeddedLog(join(folder, 'events.db')).log
  return { open, reopen: open, remove: async () => rmSync(folder, { recursive: true }) }
})
