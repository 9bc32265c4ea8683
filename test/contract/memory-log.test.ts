import { MemoryLog } from '../../src/log/index.ts'
import { describeLog } from './log-contract.ts'

describeLog('in-memory', () => ({
  open: async () => new MemoryLog(),
  remove: async () => {},
}))
