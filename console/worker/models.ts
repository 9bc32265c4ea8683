/** The view-models, by name. Each is a pure function of a moment and the parameters of its view. */
import { agentsModel } from '../models/agents.ts'
import { diffModel } from '../models/diff.ts'
import { expectationModel } from '../models/expectation.ts'
import { guardsModel } from '../models/guards.ts'
import { heldModel, waitingModel } from '../models/held.ts'
import { dynamicKeysModel, keysModel } from '../models/keys.ts'
import { marksModel } from '../models/marks.ts'
import { mcpModel } from '../models/mcp.ts'
import { objectModel } from '../models/object.ts'
import { objectsModel } from '../models/objects.ts'
import { overviewModel } from '../models/overview.ts'
import { searchModel } from '../models/search.ts'
import { sendPlacesModel } from '../models/send-places.ts'
import { eventModel, rowsModel, timelineModel, timeModel } from '../models/timeline.ts'
import { toolVersionsModel } from '../models/tool-versions.ts'
import { topologyModel } from '../models/topology.ts'

export const models = {
  overview: overviewModel,
  objects: objectsModel,
  search: searchModel,
  object: objectModel,
  expectation: expectationModel,
  topology: topologyModel,
  timeline: timelineModel,
  rows: rowsModel,
  time: timeModel,
  event: eventModel,
  diff: diffModel,
  marks: marksModel,
  keys: keysModel,
  dynamicKeys: dynamicKeysModel,
  guards: guardsModel,
  agents: agentsModel,
  mcp: mcpModel,
  toolVersions: toolVersionsModel,
  sendPlaces: sendPlacesModel,
  held: heldModel,
  waiting: waitingModel,
}

export type Models = typeof models
