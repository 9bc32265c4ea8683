import { MemoryLog } from '../../src/control/log/index.ts'
import { describeLog } from './log-contract.ts'

describeLog('in-memory', () => ({
  open: async () => new MemoryLog(),
  remove: async () => {},
}))
