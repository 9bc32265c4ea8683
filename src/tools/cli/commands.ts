/**
 * The commands, in the order of the help text. A command declares its options here, when the process starts;
 * its action is a module that is loaded only if the command runs.
 */
import { Command } from 'commander'
import { addAi } from './ai/index.ts'
import { addApprove, addReject } from './approve/index.ts'
import { addBisect } from './bisect/index.ts'
import { addBudgets } from './budgets/index.ts'
import { addCatalog } from './catalog/index.ts'
import { addConsole } from './console/index.ts'
import { addController } from './controller/index.ts'
import { addCrds } from './crds.ts'
import { addDecisions } from './decisions/index.ts'
import { addDiff } from './diff/index.ts'
import { addDoctor } from './doctor/index.ts'
import { addExplain } from './explain/index.ts'
import { addFilterConfig } from './filter-config/index.ts'
import { addGrants } from './grants/index.ts'
import { addIdentityProvider } from './idp/index.ts'
import { addImport } from './import/index.ts'
import { addInit } from './init/index.ts'
import { addKeys } from './keys/index.ts'
import { addLog } from './log/index.ts'
import { addMcp } from './mcp/index.ts'
import { addProxy } from './proxy/index.ts'
import { addRecords } from './records/index.ts'
import { addRender } from './render/index.ts'
import { addReplay } from './replay/index.ts'
import { addRevoke } from './revoke/index.ts'
import { addFreeze, addRollback } from './rollback/index.ts'
import { addRollout } from './rollout/index.ts'
import { addRun } from './run/index.ts'
import { addHelp, hintAtHelp } from './shared/options.ts'
import { paintLabels } from './shared/terminal.ts'
import { packageVersion } from './shared/version.ts'
import { addCompletion, addManual } from './shell/index.ts'
import { addSimulate } from './simulate/index.ts'
import { addSpend } from './spend/index.ts'
import { addStatus } from './status/index.ts'
import { addStdio } from './stdio/index.ts'
import { addTools } from './tools/index.ts'
import { addTop } from './top/index.ts'
import { addValidate } from './validate/index.ts'
import { addVersion } from './version.ts'
import { addWhatIf } from './what-if/index.ts'

const commands: readonly ((program: Command) => void)[] = [
  addRun,
  addInit,
  addAi,
  addMcp,
  addProxy,
  addStdio,
  addValidate,
  addStatus,
  addDoctor,
  addTop,
  addLog,
  addReplay,
  addExplain,
  addSimulate,
  addDecisions,
  addRecords,
  addSpend,
  addBudgets,
  addTools,
  addConsole,
  addBisect,
  addDiff,
  addWhatIf,
  addRollback,
  addFreeze,
  addApprove,
  addReject,
  addRollout,
  addRender,
  addCrds,
  addVersion,
  addController,
  addIdentityProvider,
  addKeys,
  addRevoke,
  addGrants,
  addImport,
  addCompletion,
  addManual,
  addCatalog,
  addFilterConfig,
  addHelp,
]

/** Defines the command line. It exits by a CommanderError, so that the caller decides about the exit code. */
export function createProgram(): Command {
  const program = new Command('sluice')
    .description('Gateway for AI, MCP and HTTP traffic.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(paintLabels(text, process.stderr)) })
  for (const add of commands) add(program)
  hintAtHelp(program)
  return program
}
