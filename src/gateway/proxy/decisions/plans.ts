/** Writes a list of policies (a plan) once for each block. Decisions refer to the plan by its number. */
import type { BlockWriter } from '../../../past/decisions/block-writer.ts'
import { blockFields, planFields, stepFields } from '../../../past/decisions/fields.ts'
import type { Step } from '../../policies/define.ts'
import { configDigest, originOf, policyText, type StepOrigin } from '../config/policies.ts'

/** Returns the number of the plan of these steps; 0 if there are none. */
export function planNumber(block: BlockWriter, steps: readonly Step[] | undefined): number {
  if (steps === undefined || steps.length === 0) return 0
  return block.planNumber(steps) || addPlan(block, steps)
}

const single = new WeakMap<object, readonly Step[]>()

/** Like `planNumber`, for one step. */
export function singlePlanNumber(block: BlockWriter, step: object | undefined): number {
  if (step === undefined) return 0
  let steps = single.get(step)
  if (steps === undefined) {
    steps = [step as Step]
    single.set(step, steps)
  }
  return planNumber(block, steps)
}

function addPlan(block: BlockWriter, steps: readonly Step[]): number {
  const origins = steps.map(originOf)
  for (const origin of origins) shareTexts(block, origin)
  const at = block.begin(blockFields.plans)
  for (const origin of origins) writeStep(block, origin)
  block.end(at)
  return block.addPlan(steps)
}

function shareTexts(block: BlockWriter, origin: StepOrigin | undefined): void {
  block.shared(blockFields.texts, nameOf(origin))
  if (origin === undefined) return
  block.shared(blockFields.texts, configDigest(origin))
  for (const policy of origin.policies) block.shared(blockFields.texts, policyText(policy))
}

function writeStep(block: BlockWriter, origin: StepOrigin | undefined): void {
  const { texts } = blockFields
  const at = block.begin(planFields.steps)
  block.uint(stepFields.name, block.shared(texts, nameOf(origin)))
  if (origin !== undefined) {
    const objects = block.begin(stepFields.objects)
    for (const policy of origin.policies) block.packed(block.shared(texts, policyText(policy)))
    block.end(objects)
    block.uint(stepFields.config, block.shared(texts, configDigest(origin)))
  }
  block.end(at)
}

/** A step without an origin adds the credentials of a backend. */
const nameOf = (origin: StepOrigin | undefined): string => origin?.name ?? 'backend.credentials'
