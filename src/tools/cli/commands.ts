/**
 * The commands, in the order of the help text. A command declares its options here, when the process starts;
 * its action is a module that is loaded only if the command runs.
 */
import { Command } from 'commander'
import { addBisect } from './bisect/index.ts'
import { addConsole } from './console/index.ts'
import { addController } from './controller/index.ts'
import { addCrds } from './crds.ts'
import { addDecisions } from './decisions/index.ts'
import { addDiff } from './diff/index.ts'
import { addExplain } from './explain/index.ts'
import { addFilterConfig } from './filter-config/index.ts'
import { addIdentityProvider } from './idp/index.ts'
import { addImport } from './import/index.ts'
import { addLog } from './log/index.ts'
import { addProxy } from './proxy/index.ts'
import { addRender } from './render/index.ts'
import { addReplay } from './replay/index.ts'
import { addRun } from './run/index.ts'
import { addHelp, hintAtHelp } from './shared/options.ts'
import { packageVersion } from './shared/version.ts'
import { addCompletion, addManual } from './shell/index.ts'
import { addSimulate } from './simulate/index.ts'
import { addStatus } from './status/index.ts'
import { addValidate } from './validate/index.ts'
import { addVersion } from './version.ts'
import { addWhatIf } from './what-if/index.ts'

const commands: readonly ((program: Command) => void)[] = [
  addRun,
  addProxy,
  addValidate,
  addStatus,
  addLog,
  addReplay,
  addExplain,
  addSimulate,
  addDecisions,
  addConsole,
  addBisect,
  addDiff,
  addWhatIf,
  addRender,
  addCrds,
  addVersion,
  addController,
  addIdentityProvider,
  addImport,
  addCompletion,
  addManual,
  addFilterConfig,
  addHelp,
]

/** Defines the command line. It exits by a CommanderError, so that the caller decides about the exit code. */
export function createProgram(): Command {
  const program = new Command('sluice')
    .description('Gateway for AI, MCP and HTTP traffic.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .exitOverride()
  for (const add of commands) add(program)
  hintAtHelp(program)
  return program
}
