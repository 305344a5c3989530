"""JSMA as the paper writes it: one input, one pair and one derivative at a time."""

import numpy as np
import torch


def slow_jsma(model, picture, goal, theta=1.0, gamma=1.0):
    """Algorithm 3 of Papernot et al. 2016 with the saliency of equation 8, on scores before the softmax."""
    adversarial = torch.tensor(picture, dtype=torch.float32)[None]
    shape, values = adversarial.shape, adversarial.numel()
    limit = int(values * gamma / 2 + 1e-9)
    done = 0
    while done < limit and int(model(adversarial).argmax()) != goal:
        jacobian = torch.autograd.functional.jacobian(lambda x: model(x)[0], adversarial).reshape(-1, values).numpy()
        wanted = jacobian[goal]
        others = jacobian.sum(0) - wanted
        flat = adversarial.reshape(-1).numpy()
        domain = [p for p in range(values) if (flat[p] < 1 if theta > 0 else flat[p] > 0)]
        pair = slow_pair(wanted, others, domain, 1 if theta > 0 else -1)
        if pair is None:
            break
        changed = flat.copy()
        for p in pair:
            changed[p] = np.clip(changed[p] + theta, 0, 1)
        adversarial = torch.tensor(changed).reshape(shape)
        done += 1
    return adversarial[0].numpy()


def slow_pair(wanted, others, domain, sign=1):
    """Try every pair of the domain."""
    best, found = 0.0, None
    for place, p in enumerate(domain):
        for q in domain[place + 1 :]:
            alpha, beta = wanted[p] + wanted[q], others[p] + others[q]
            helps = (alpha > 0 and beta < 0) if sign > 0 else (alpha < 0 and beta > 0)
            if helps and -alpha * beta > best:
                best, found = -alpha * beta, (p, q)
    return found
