import { expect } from 'chai';
import {
  collectionPath,
  isObjectPath,
  jobs,
  objectPath,
  pods,
  withQuery,
} from '../../../src/clients/kubernetes/paths.ts';

describe('paths of the Kubernetes API', () => {
  it('name a collection, an object and its parts', () => {
    expect(collectionPath(jobs, 'grid')).to.equal('/apis/batch/v1/namespaces/grid/jobs');
    expect(collectionPath(pods)).to.equal('/api/v1/pods');
    expect(objectPath(pods, 'grid', 'a-1', 'log')).to.equal('/api/v1/namespaces/grid/pods/a-1/log');
    const namespaces = { group: '', version: 'v1', resource: 'namespaces' };
    expect(`${collectionPath(namespaces)}/grid`).to.satisfy(isObjectPath);
  });

  it('are refused where a part is empty or would be another path', () => {
    for (const name of ['', '..', 'a/b', 'a?b', 'a b', 'a\r\nb', '-a', 'ä']) {
      expect(() => objectPath(jobs, 'grid', name), name).to.throw(TypeError, 'cannot be a part of a path');
      expect(() => objectPath(jobs, name, 'a'), name).to.throw(TypeError);
    }
  });

  it('tell an object from a collection, which a delete would empty', () => {
    const all: [path: string, object: boolean][] = [
      ['/apis/batch/v1/namespaces/grid/jobs', false],
      ['/apis/batch/v1/namespaces/grid/jobs/', false],
      ['/apis/batch/v1/namespaces/grid/jobs/a', true],
      ['/api/v1/namespaces/grid/pods', false],
      ['/api/v1/namespaces/grid/pods/a/log', true],
      ['/api/v1/namespaces', false],
      ['/api/v1/namespaces/grid', true],
      ['/api/v1/nodes', false],
      ['/api/v1/nodes/n', true],
      ['/apis/batch/v1/jobs', false],
      ['/', false],
      ['', false],
      ['/healthz', false],
      ['/apis/batch/v1/namespaces//jobs/a', false],
    ];
    for (const [path, object] of all) expect(isObjectPath(path), path).to.equal(object);
  });

  it('carry a query that cannot break out', () => {
    expect(
      withQuery('/api/v1/pods', {
        labelSelector: 'a=b,c in (d)',
        limit: 5,
        watch: true,
        continue: undefined,
      }),
    ).to.equal('/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20(d)&limit=5&watch=true');
    for (const path of [
      'api/v1/pods',
      '/api/v1/pods?x=1',
      '/api/v1/pods/',
      '/api//pods',
      '/api/../pods',
      '/a b',
      '/a\r\nX: y',
      '',
    ]) {
      expect(() => withQuery(path), path).to.throw(TypeError, 'is not a path');
    }
  });
});
